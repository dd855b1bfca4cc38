/* One behaviour with memory and code each: says at its end what it counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "behaves.h"

#ifndef SYS_mseal
#define SYS_mseal 462
#endif
enum { MANY = 101 };

static void *pages(size_t count, int protection)
{
	return mmap(NULL, count * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void sealed(void)
{
	char *memory = pages(2, PROT_READ | PROT_WRITE);
	long result = syscall(SYS_mseal, memory, 2 * PAGE, 0);

	if (result && errno == ENOSYS) {
		puts("no mseal here");
		return;
	}
	printf("%ld\n", result);
	printf("munmap %d\n", munmap(memory, PAGE));
	printf("mprotect %d\n", mprotect(memory, PAGE, PROT_READ));
	printf("%d\n", errno == EPERM);
}

/* Seals the text of libc, which the probes of a later attach would have to write to. */
static int seal_text(struct dl_phdr_info *info, size_t size, void *sum)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum && strstr(info->dlpi_name, "libc.so"); i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

			*(long *)sum += syscall(SYS_mseal, start & -PAGE, info->dlpi_phdr[i].p_memsz & -PAGE, 0) == 0;
		}
	return 0;
}

static void sealed_text(void)
{
	long sum = 0;

	dl_iterate_phdr(seal_text, &sum);
	for (int i = 0; i < MANY; i++)
		free(malloc(47));
	puts("went on");
}

struct faults {
	int fd;
	char *page;
};

static void *serve_faults(void *given)
{
	struct faults *faults = given;
	char *source = pages(1, PROT_READ | PROT_WRITE);
	struct uffd_msg message;

	memset(source, 'u', PAGE);
	poll(&(struct pollfd){.fd = faults->fd, .events = POLLIN}, 1, -1);
	if (read(faults->fd, &message, sizeof(message)) == sizeof(message))
		ioctl(faults->fd, UFFDIO_COPY, &(struct uffdio_copy){(uintptr_t)faults->page, (uintptr_t)source, PAGE, 0, 0});
	return NULL;
}

static void served_faults(void)
{
	struct faults faults = {(int)syscall(SYS_userfaultfd, O_CLOEXEC), pages(1, PROT_READ | PROT_WRITE)};
	pthread_t thread;

	if (faults.fd < 0) {
		puts("no userfaultfd here");
		return;
	}
	ioctl(faults.fd, UFFDIO_API, &(struct uffdio_api){.api = UFFD_API});
	ioctl(faults.fd, UFFDIO_REGISTER,
	      &(struct uffdio_register){{(uintptr_t)faults.page, PAGE}, UFFDIO_REGISTER_MODE_MISSING, 0});
	pthread_create(&thread, NULL, serve_faults, &faults);
	printf("%c\n", *(volatile char *)faults.page);
	pthread_join(thread, NULL);
}

static void huge_pages(void)
{
	size_t size = 8UL << 20;
	unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long sum = 0;

	madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 3, size);
	madvise(memory + 4096, 3UL << 20, MADV_DONTNEED);
	for (size_t i = 0; i < size; i += 512)
		sum += memory[i];
	printf("%lu\n", sum);
}

static void moved(void)
{
	char *memory = pages(4, PROT_READ | PROT_WRITE);

	for (int i = 0; i < MANY; i++) {
		memory[0] = (char)i;
		memory = mremap(memory, (4 + i) * PAGE, (5 + i) * PAGE, MREMAP_MAYMOVE);
		if (memory[0] != (char)i)
			fail("moved wrongly");
	}
	puts("moved");
}

static void replaced(void)
{
	char *memory = pages(8, PROT_READ | PROT_WRITE);

	memset(memory, 'a', 8 * PAGE);
	mmap(memory + 2 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	munmap(memory + 5 * PAGE, PAGE);
	printf("%d %d %d\n", memory[PAGE], memory[2 * PAGE], memory[6 * PAGE]);
}

static void breaks(void)
{
	char *start = sbrk(0);

	printf("%d %d\n", sbrk(5 * PAGE) == start, sbrk(-5 * PAGE) == start + 5 * PAGE);
}

static void trimmed(void)
{
	mallopt(M_TRIM_THRESHOLD, 1 << 16);
	mallopt(M_MMAP_THRESHOLD, 1 << 17);
	for (int i = 0; i < MANY; i++) {
		char *block = malloc((size_t)i * 4099);

		memset(block, i, (size_t)i * 4099);
		block = realloc(block, (size_t)i * 2053 + 1);
		free(block);
	}
	printf("%d\n", malloc_trim(0) >= 0);
}

static void aligned(void)
{
	void *block;
	int sum = 0;

	for (size_t power = 8; power <= 65536; power *= 2) {
		sum += posix_memalign(&block, power, 100) == 0 && !((uintptr_t)block % power);
		free(block);
		block = aligned_alloc(power, power * 3);
		sum += !((uintptr_t)block % power);
		free(block);
		block = memalign(power, 10);
		sum += !((uintptr_t)block % power);
		free(block);
	}
	printf("%d, %d\n", sum, posix_memalign(&block, 3, 10));
}

static void failing(void)
{
	volatile size_t much = ~0UL >> 1;

	errno = 0;
	kept = malloc(much);
	printf("%d %d\n", kept == NULL, errno == ENOMEM);
	kept = calloc(much, 16);
	printf("%d\n", kept == NULL);
	kept = reallocarray(malloc(7), much, 16);
	printf("%d\n", kept == NULL);
}

static void libraries(void)
{
	int sum = 0;

	for (int i = 0; i < MANY; i++) {
		void *library = dlopen("libm.so.6", RTLD_NOW);
		double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");

		sum += cosine(0.0) == 1.0;
		dlclose(library);
	}
	printf("%d\n", sum);
}

static void another_namespace(void)
{
	void *library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	void *(*other_malloc)(size_t) = library ? (void *(*)(size_t))dlsym(library, "malloc") : NULL;
	void (*other_free)(void *) = library ? (void (*)(void *))dlsym(library, "free") : NULL;

	for (int i = 0; i < MANY && other_free; i++)
		other_free(other_malloc(53));
	printf("another malloc: %d\n", (void *)other_malloc != (void *)malloc && other_malloc);
}

static unsigned long hash_of(const unsigned char *from, size_t size)
{
	unsigned long hash = 1469598103934665603UL;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ from[i]) * 1099511628211UL;
	return hash;
}

static int hash_text(struct dl_phdr_info *info, size_t size, void *hash)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum && !*(unsigned long *)hash; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
			*(unsigned long *)hash =
				hash_of((void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), info->dlpi_phdr[i].p_memsz);
	return 1;
}

static void own_hash(void)
{
	unsigned long hash = 0;

	dl_iterate_phdr(hash_text, &hash);
	printf("%lx\n", hash);
}

static void hash_of_malloc(void)
{
	printf("%lx\n", hash_of((void *)dlsym(RTLD_DEFAULT, "malloc"), 64));
}

static int add(int a, int b)
{
	return a + b;
}

static void copied_code(void)
{
	int (*copy)(int, int) = pages(1, PROT_READ | PROT_WRITE);
	int sum = 0;

	for (int i = 0; i < MANY; i++) {
		mprotect(copy, PAGE, PROT_READ | PROT_WRITE);
		memcpy((void *)copy, (void *)add, 64);
		mprotect(copy, PAGE, PROT_READ | PROT_EXEC);
		sum += copy(i, 1);
	}
	printf("%d\n", sum);
}

/* As tools that patch functions do: the first instructions of malloc run elsewhere. Here they only run up to a return. */
static void copied_start_of_malloc(void)
{
	unsigned char *copy = pages(1, PROT_READ | PROT_WRITE);
	static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
	unsigned char *start = dlsym(RTLD_DEFAULT, "malloc");
	uintptr_t rest = (uintptr_t)start + 2;
	void *(*through_copy)(size_t) = (void *(*)(size_t))(void *)copy;

	memcpy(copy, start, 2); /* push %r12 in glibc 2.36 */
	memcpy(copy + 2, jump, sizeof(jump));
	memcpy(copy + 2 + sizeof(jump), &rest, sizeof(rest));
	mprotect(copy, PAGE, PROT_READ | PROT_EXEC);
	free(through_copy(59));
	puts("went through the copy");
}

static sigjmp_buf back;
static volatile sig_atomic_t traps;

static void trapped(int number)
{
	traps++;
	siglongjmp(back, number);
}

static void builtin_traps(void)
{
	signal(SIGILL, trapped);
	while (traps < MANY)
		if (sigsetjmp(back, 1) == 0)
			__builtin_trap();
	printf("%d traps\n", (int)traps);
}

static void *recurse(void *depth)
{
	volatile char room[4096];
	long left = (long)depth;

	room[0] = 1;
	return left ? (char *)recurse((void *)(left - 1)) + room[0] : NULL;
}

static void small_thread_stacks(void)
{
	pthread_attr_t attributes;
	long sum = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (int i = 0; i < MANY; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, &attributes, recurse, (void *)7L);
		pthread_join(thread, &result);
		sum += (long)result;
	}
	printf("%ld\n", sum);
}

static void locked_memory(void)
{
	printf("%d", mlockall(MCL_CURRENT | MCL_FUTURE));
	for (int i = 0; i < MANY; i++)
		free(malloc(100003));
	printf(" %d\n", munlockall());
}

static const struct behaviour behaviours[] = {
	{"sealed", sealed}, {"sealed_text", sealed_text}, {"served_faults", served_faults}, {"huge_pages", huge_pages},
	{"moved", moved}, {"replaced", replaced}, {"breaks", breaks}, {"trimmed", trimmed}, {"aligned", aligned},
	{"failing", failing}, {"libraries", libraries}, {"another_namespace", another_namespace}, {"own_hash", own_hash},
	{"hash_of_malloc", hash_of_malloc}, {"copied_code", copied_code},
	{"copied_start_of_malloc", copied_start_of_malloc}, {"builtin_traps", builtin_traps},
	{"small_thread_stacks", small_thread_stacks}, {"locked_memory", locked_memory},
};

int main(int argc, char **argv)
{
	return behave(argc, argv, behaviours, COUNT(behaviours));
}
