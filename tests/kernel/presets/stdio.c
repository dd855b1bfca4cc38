#define _GNU_SOURCE
#include "mode.h"

int main(int argc, char **argv)
{
	static char buffer[64];
	FILE *kept;

	read_mode(argc, argv);
	for (int i = 0; i < 7; i++) {
		FILE *file = fopen("/dev/null", "r");

		if (!leaks || i >= 3)
			fclose(file);
	}
	fopen("/nonexistent/file", "r");
	kept = fmemopen(buffer, sizeof(buffer), "w");
	fputs("kept", kept);
	fclose(kept);
	pclose(popen("exit 0", "r"));
	kept = fopen("/dev/null", "r");
	fclose(kept);
	if (overputs)
		fclose(kept);
	return 0;
}
