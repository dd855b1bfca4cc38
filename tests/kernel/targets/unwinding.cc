// Leaves functions that are probed at their return by every way but it, or looks at the stack within them.
// unwinding MODE prints what it saw; it must print the same when it is traced.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <setjmp.h>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((__noinline__, __noclone__))

struct thing {
	int number;
};

enum { DEPTH = 50, THROWS = 211, MADE = 13 };
static thing *volatile kept[MADE];
static jmp_buf back;
static ucontext_t main_context, other_context;
static volatile int progress;

extern "C" NOINLINE void drop_thing(thing *t)
{
	delete t;
}

static NOINLINE void descend(int depth)
{
	if (!depth)
		throw std::runtime_error("below");
	descend(depth - 1);
	progress = progress + 1;
}

static NOINLINE void print_frames()
{
	void *frames[64];
	int count = backtrace(frames, 64);

	for (int i = 0; i < count; i++) {
		Dl_info info;

		if (!dladdr(frames[i], &info))
			printf("unknown\n");
		else if (info.dli_sname)
			printf("%s+%#tx\n", info.dli_sname, (char *)frames[i] - (char *)info.dli_saddr);
		else
			printf("%s\n", strrchr(info.dli_fname, '/'));
	}
}

// All of these are creates to refleak.

extern "C" NOINLINE thing *make_throwing(int fails)
{
	if (fails)
		descend(DEPTH);
	return new thing();
}

extern "C" NOINLINE thing *make_catching(int)
{
	try {
		descend(DEPTH);
	} catch (std::runtime_error &) {
		progress = 0;
	}
	return new thing();
}

extern "C" NOINLINE thing *make_nested(int depth)
{
	thing *made = depth ? make_nested(depth - 1) : make_throwing(1);

	progress = progress + 1;
	return made;
}

extern "C" NOINLINE thing *make_looking(int depth)
{
	thing *made;

	if (depth)
		return made = make_looking(depth - 1), progress = progress + 1, made;
	print_frames();
	return new thing();
}

extern "C" NOINLINE thing *make_jumping(int)
{
	longjmp(back, 1);
}

extern "C" NOINLINE thing *make_switching(int leaves)
{
	swapcontext(&other_context, &main_context);
	if (leaves)
		setcontext(&main_context);
	return new thing();
}

extern "C" NOINLINE thing *make_exiting(int)
{
	pthread_exit(const_cast<int *>(&progress));
}

struct Node {
	int number;
	explicit Node(int number);
	~Node();
};

NOINLINE Node::Node(int n) : number(n)
{
	if (n % 2)
		descend(3);
}

NOINLINE Node::~Node()
{
	progress = number;
}

static int bad_alloc()
{
	int caught = 0;

	for (int i = 0; i < THROWS; i++) {
		try {
			kept[0] = (thing *)new char[PTRDIFF_MAX / 2 - i];
		} catch (std::bad_alloc &) {
			caught++;
		}
	}
	kept[1] = (thing *)malloc(137);
	return caught;
}

static int constructor()
{
	int caught = 0;

	for (int i = 0; i < THROWS; i++) {
		try {
			Node *node = new Node(i);

			delete node;
		} catch (std::runtime_error &) {
			caught++;
		}
	}
	return caught;
}

static int throwing()
{
	int caught = 0;

	for (int i = 0; i < THROWS; i++) {
		try {
			thing *made = make_throwing(i % 2);

			drop_thing(made);
		} catch (std::runtime_error &) {
			caught++;
		}
	}
	return caught;
}

static int nested()
{
	int caught = 0;

	for (int i = 0; i < THROWS; i++) {
		try {
			kept[0] = make_nested(20);
		} catch (std::runtime_error &) {
			caught++;
		}
	}
	return caught;
}

static int catching()
{
	for (int i = 0; i < MADE; i++)
		kept[i] = make_catching(i);
	return MADE;
}

static int looking()
{
	for (int i = 0; i < MADE; i++)
		kept[i] = make_looking(i);
	return MADE;
}

static int jumping()
{
	volatile int jumps = 0;

	if (setjmp(back))
		jumps = jumps + 1;
	if (jumps < MADE)
		make_jumping(0);
	kept[0] = make_throwing(0);
	return jumps;
}

static void on_other_stack()
{
	for (int i = 0; i < MADE; i++)
		kept[i] = make_switching(i == MADE - 1);
}

static int switching()
{
	static char stack[1 << 16];
	volatile int switches = 0;

	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	makecontext(&other_context, on_other_stack, 0);
	while (switches < MADE) {
		switches = switches + 1;
		drop_thing(make_throwing(0));
		swapcontext(&main_context, &other_context);
	}
	return switches;
}

static NOINLINE void clean_up(void *block)
{
	printf("cleaned up\n");
	free(block);
}

static void *exit_within(void *)
{
	void *block = malloc(151);

	pthread_cleanup_push(clean_up, block);
	make_exiting(0);
	pthread_cleanup_pop(0);
	return 0;
}

static void *open_forever(void *name)
{
	void *block = malloc(157);

	pthread_cleanup_push(clean_up, block);
	open((const char *)name, O_RDONLY);
	pthread_cleanup_pop(0);
	return 0;
}

static int in_thread(void *(*run)(void *), void *argument, int cancel)
{
	pthread_t thread;
	void *result = 0;

	pthread_create(&thread, 0, run, argument);
	if (cancel)
		pthread_cancel(thread);
	pthread_join(thread, &result);
	return result == (cancel ? PTHREAD_CANCELED : (void *)&progress);
}

static int cancelled()
{
	char folder[] = "/tmp/refleak-unwinding-XXXXXX", name[64];
	int ended = 0;

	snprintf(name, sizeof(name), "%s/fifo", mkdtemp(folder));
	mkfifo(name, 0600);
	for (int i = 0; i < MADE; i++)
		ended += in_thread(open_forever, name, 1);
	unlink(name);
	rmdir(folder);
	return ended;
}

static int exiting()
{
	int ended = 0;

	for (int i = 0; i < MADE; i++)
		ended += in_thread(exit_within, 0, 0);
	return ended;
}

// In a child, whose stack is a copy that is shared until it is written to.
static NOINLINE thing *fork_and_throw(volatile char *deep)
{
	pid_t child = fork();

	if (!child) {
		deep[0] = 1;
		descend(DEPTH);
	}
	waitpid(child, 0, 0);
	return 0;
}

extern "C" NOINLINE thing *make_forking(int depth)
{
	volatile char page[4096];

	page[0] = depth;
	return depth ? make_forking(depth - 1) + page[0] - depth : fork_and_throw(page);
}

static int forking()
{
	try {
		make_forking(5);
	} catch (std::runtime_error &) {
		printf("caught by the child\n");
		fflush(stdout);
		_exit(0);
	}
	return 1;
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		int (*run)();
	} modes[] = {
		{ "bad_alloc", bad_alloc }, { "constructor", constructor }, { "throwing", throwing },
		{ "nested", nested }, { "catching", catching }, { "looking", looking }, { "jumping", jumping },
		{ "switching", switching }, { "cancelled", cancelled }, { "exiting", exiting }, { "forking", forking },
	};

	setvbuf(stdout, 0, _IONBF, 0);
	for (auto &mode : modes) {
		if (count > 1 && !strcmp(mode.name, arguments[1])) {
			printf("%s %d\n", mode.name, mode.run());
			return 0;
		}
	}
	return 2;
}
