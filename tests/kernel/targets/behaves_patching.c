/* Programs that patch malloc and free in memory, as tools for hooks do: each says at its end how often it was called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "behaves.h"

enum { MANY = 101, SHORT_JUMP = 5, LONG_JUMP = 14, LONGEST = 32 };
#define NEAR (1L << 30)

static void *(*make)(size_t);
static void (*end)(void *);
static atomic_long made, ended;

static void *made_through_hook(size_t size)
{
	made++;
	return make(size);
}

static void ended_through_hook(void *block)
{
	ended++;
	end(block);
}

/* A page that a jump of five bytes reaches. */
static unsigned char *page_near(const unsigned char *place, int protection)
{
	for (long away = 16 * PAGE; away < NEAR; away += 16 * PAGE) {
		uintptr_t wanted = ((uintptr_t)place & -PAGE) - away;
		unsigned char *page = mmap((void *)wanted, PAGE, protection,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (page == (void *)wanted)
			return page;
		if (page != MAP_FAILED)
			munmap(page, PAGE);
	}
	fail("no page near");
	return NULL;
}

static unsigned char *put_jump(unsigned char *at, const void *to)
{
	static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};

	memcpy(at, jump, sizeof(jump));
	memcpy(at + sizeof(jump), &to, sizeof(to));
	return at + LONG_JUMP;
}

/*
 * glibc 2.36's first instructions, up to `length` bytes: those of malloc stand for themselves; of free's the second
 * is a jump, which is written anew.
 */
static unsigned char *put_start(unsigned char *at, unsigned char *function, size_t length)
{
	static const unsigned char free_start[] = {0x48, 0x85, 0xff, 0x0f, 0x84};
	int distance;

	if (memcmp(function, free_start, sizeof(free_start))) {
		memcpy(at, function, length);
		return put_jump(at + length, function + length);
	}
	memcpy(&distance, function + sizeof(free_start), sizeof(distance));
	memcpy(at, function, 3);
	at[3] = 0x75; /* jne over the jump */
	at[4] = LONG_JUMP;
	put_jump(at + 5, function + 9 + distance);
	memcpy(at + 5 + LONG_JUMP, function + 9, length - 9);
	return put_jump(at + 5 + LONG_JUMP + length - 9, function + length);
}

struct patch {
	unsigned char *function, *start, *relay;
	size_t length;
};

static struct patch prepare(const char *name, size_t length, int protection, const void *hook)
{
	unsigned char *function = dlsym(RTLD_DEFAULT, name), *page = page_near(function, protection);
	unsigned char *relay = put_start(page, function, length);

	put_jump(relay, hook);
	return (struct patch){function, page, relay, length};
}

/* The page of the function is made writable, and not again what it was, or only readable as before. */
static void write_jump(struct patch patch, int meanwhile)
{
	uintptr_t page = (uintptr_t)patch.function & -PAGE;
	int distance = patch.relay - (patch.function + SHORT_JUMP);

	if (mprotect((void *)page, 2 * PAGE, meanwhile))
		fail("mprotect");
	patch.function[0] = 0xe9;
	memcpy(patch.function + 1, &distance, sizeof(distance));
	if (mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_EXEC))
		fail("mprotect");
}

static void *use(void *unused)
{
	for (int i = 0; i < MANY; i++) {
		void *volatile block = malloc(59 + i);

		free(block);
	}
	return unused;
}

static void patch_both(int protection, size_t malloc_length, size_t free_length)
{
	struct patch first = prepare("malloc", malloc_length, protection, made_through_hook);
	struct patch second = prepare("free", free_length, protection, ended_through_hook);

	make = (void *(*)(size_t))(void *)first.start;
	end = (void (*)(void *))(void *)second.start;
	if (!(protection & PROT_EXEC)) {
		mprotect(first.start, PAGE, PROT_READ | PROT_EXEC);
		mprotect(second.start, PAGE, PROT_READ | PROT_EXEC);
	}
	write_jump(first, PROT_READ | PROT_WRITE | PROT_EXEC);
	write_jump(second, PROT_READ | PROT_WRITE | PROT_EXEC);
	use(NULL);
}

static void count(void)
{
	printf("%d, %d\n", made >= MANY, ended >= MANY);
}

/* The copies stand in memory that is writable and executable at once. */
static void hooks(void)
{
	patch_both(PROT_READ | PROT_WRITE | PROT_EXEC, 7, 9);
	count();
}

/* The copies are made executable before the functions are patched. */
static void protected_hooks(void)
{
	patch_both(PROT_READ | PROT_WRITE, 11, 14);
	count();
}

static void hooks_in_a_child(void)
{
	pid_t child;

	patch_both(PROT_READ | PROT_WRITE | PROT_EXEC, 7, 14);
	child = fork();
	if (!child) {
		use(NULL);
		_exit(made >= 2 * MANY ? 7 : 8);
	}
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	if (!fork()) {
		execl("/bin/true", "true", NULL);
		_exit(9);
	}
	wait(&status);
	printf("%d\n", status);
	count();
}

static void hooks_with_threads(void)
{
	pthread_t threads[5];

	for (int i = 0; i < 5; i++)
		pthread_create(&threads[i], NULL, use, NULL);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	patch_both(PROT_READ | PROT_WRITE | PROT_EXEC, 7, 9);
	for (int i = 0; i < 5; i++)
		pthread_create(&threads[i], NULL, use, NULL);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	count();
}

/* To be attached to when both are patched. */
static void hooked_before(void)
{
	patch_both(PROT_READ | PROT_WRITE | PROT_EXEC, 7, 9);
	ready();
	use(NULL);
	count();
}

/* Nothing is patched: the copy is run beside the function, as code for which a compiler took it would be. */
static void copies(void)
{
	struct patch first = prepare("malloc", 7, PROT_READ | PROT_WRITE, NULL);
	struct patch second = prepare("free", 14, PROT_READ | PROT_WRITE, NULL);

	mprotect(first.start, PAGE, PROT_READ | PROT_EXEC);
	mprotect(second.start, PAGE, PROT_READ | PROT_EXEC);
	for (int i = 0; i < MANY; i++)
		((void (*)(void *))(void *)second.start)(((void *(*)(size_t))(void *)first.start)(59 + i));
	puts("went through the copies");
}

/* The same in memory that needs no change to become code. */
static void writable_copies(void)
{
	struct patch first = prepare("malloc", 7, PROT_READ | PROT_WRITE | PROT_EXEC, NULL);

	for (int i = 0; i < MANY; i++)
		free(((void *(*)(size_t))(void *)first.start)(59 + i));
	puts("went through the copy");
}

static const struct behaviour behaviours[] = {
	{"hooks", hooks}, {"protected_hooks", protected_hooks}, {"hooks_in_a_child", hooks_in_a_child},
	{"hooks_with_threads", hooks_with_threads}, {"copies", copies},
	{"hooked_before", hooked_before}, {"writable_copies", writable_copies},
};

int main(int argc, char **argv)
{
	return behave(argc, argv, behaviours, COUNT(behaviours));
}
