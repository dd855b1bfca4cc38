#include <curl/curl.h>
#include "mode.h"

int main(int argc, char **argv)
{
	CURL *easy;
	CURLM *multi;
	CURLU *url;

	read_mode(argc, argv);
	curl_global_init(CURL_GLOBAL_ALL);
	for (int i = 0; i < 5; i++) {
		easy = curl_easy_init();
		if (!leaks || i >= 2)
			curl_easy_cleanup(easy);
	}
	easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_URL, "file:///dev/null");
	curl_easy_perform(easy);
	multi = curl_multi_init();
	curl_multi_cleanup(multi);
	url = curl_url();
	curl_url_cleanup(url);
	curl_easy_cleanup(easy);
	if (overputs)
		curl_easy_cleanup(easy);
	curl_global_cleanup();
	return 0;
}
