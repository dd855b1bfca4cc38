/* Below 10 frames of descend, qsort calls back, and the first 7 comparisons strdup. */
#define _GNU_SOURCE
#include "target.h"

static volatile int comparisons, returned;

static NOINLINE int compare_and_strdup(const void *a, const void *b)
{
	if (comparisons++ < 7)
		kept = strdup("0123456789");
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void descend(int frames)
{
	int numbers[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };

	if (frames > 1)
		descend(frames - 1);
	else
		qsort(numbers, COUNT(numbers), sizeof(numbers[0]), compare_and_strdup);
	returned++;
}

int main(void)
{
	descend(10);
	return comparisons > 7 ? 0 : 3;
}
