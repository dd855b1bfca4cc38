#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include "mode.h"

int main(int argc, char **argv)
{
	X509 *x = NULL;
	EVP_PKEY *key, *same;
	SSL_CTX *context;
	SSL *ssl;

	read_mode(argc, argv);
	key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	for (int i = 0; i < 3; i++) {
		x = X509_new();
		X509_set_pubkey(x, key);
		same = X509_get_pubkey(x);
		if (!leaks || i)
			EVP_PKEY_free(same);
		if (i < 2)
			X509_free(x);
	}
	X509_up_ref(x);
	X509_free(x);
	EVP_PKEY_free(key);
	context = SSL_CTX_new(TLS_client_method());
	ssl = SSL_new(context);
	SSL_CTX_free(context);
	if (!leaks)
		SSL_free(ssl);
	BIO_free(BIO_new(BIO_s_mem()));
	X509_free(x);
	if (overputs)
		X509_free(x);
	return 0;
}
