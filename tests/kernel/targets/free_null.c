/* free(NULL) 19 times, and nothing else. */
#include "target.h"

int main(void)
{
	void *volatile nothing = NULL;

	for (int i = 0; i < 19; i++)
		free(nothing);
	return 0;
}
