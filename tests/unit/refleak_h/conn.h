/* What the three parts of the test program share; compiled as C and as C++. */
#include <stddef.h>
#include "refleak.h"

#ifdef __cplusplus
#include <atomic>
extern "C" {
typedef std::atomic<int> counter;
#else
typedef _Atomic int counter;
#endif

struct conn {
	char name[8];
	struct { counter refs; } base;
	int users;
};

typedef int (*put_function)(int *, void *, const char *);

struct conn *conn_new(void);
put_function put_of_second(void);
__attribute__((visibility("default"))) put_function put_of_library(void);
__attribute__((visibility("default"))) int library_uses(struct conn *conn);

#ifdef __cplusplus
}
#endif
