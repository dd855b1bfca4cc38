// One behaviour of C++'s flow of control each: says at its end what it counted.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((__noinline__, __noclone__))

enum { DEPTH = 50, THROWS = 1009, STEPS = 307, THREADS = 11 };
static int cleaned;

struct Guard {
	std::string text = std::string(61, 'x');
	~Guard() { cleaned++; }
};

static NOINLINE int descend(int depth)
{
	Guard guard;

	if (!depth)
		throw std::runtime_error("below");
	return descend(depth - 1) + (int)guard.text.size();
}

static int caught(int throws)
{
	int count = 0;

	for (int i = 0; i < throws; i++)
		try {
			descend(DEPTH);
		} catch (const std::runtime_error &) {
			count++;
		}
	return count;
}

static void exceptions()
{
	int count = caught(THROWS);

	printf("%d caught, %d cleaned up\n", count, cleaned);
}

static void exceptions_in_threads()
{
	std::atomic<int> count{0};
	std::vector<std::thread> threads;

	for (int i = 0; i < THREADS; i++)
		threads.emplace_back([&] {
			for (int j = 0; j < 101; j++)
				try {
					throw std::string(100, 'y');
				} catch (const std::string &text) {
					count += text.size() == 100;
				}
		});
	for (auto &thread : threads)
		thread.join();
	printf("%d caught\n", count.load());
}

static void rethrown()
{
	int outer = 0;

	for (int i = 0; i < 211; i++)
		try {
			try {
				descend(7);
			} catch (...) {
				std::throw_with_nested(std::logic_error("above"));
			}
		} catch (const std::exception &error) {
			try {
				std::rethrow_if_nested(error);
			} catch (const std::runtime_error &) {
				outer++;
			}
		}
	printf("%d of both\n", outer);
}

static void stored()
{
	std::exception_ptr kept;
	int seen = 0;

	try {
		descend(3);
	} catch (...) {
		kept = std::current_exception();
	}
	std::thread([&] {
		try {
			std::rethrow_exception(kept);
		} catch (const std::runtime_error &) {
			seen = 1;
		}
	}).join();
	printf("%d in another thread\n", seen);
}

static int compare(const void *, const void *)
{
	throw 17;
}

static void through_c()
{
	int numbers[] = {3, 1, 2}, sum = 0;

	for (int i = 0; i < 103; i++)
		try {
			qsort(numbers, 3, sizeof(*numbers), compare);
		} catch (int number) {
			sum += number;
		}
	printf("%d through qsort\n", sum);
}

static char *volatile kept;

static void too_much()
{
	int count = 0;

	for (int i = 0; i < 101; i++)
		try {
			kept = new char[~0UL >> 2];
		} catch (const std::bad_alloc &) {
			count++;
		}
	kept = new (std::nothrow) char[~0UL >> 2];
	printf("%d bad_alloc, %d nullptr\n", count, kept == nullptr);
}

static int tries;

static void new_handler()
{
	if (++tries == 5)
		std::set_new_handler(nullptr);
}

static void handler_of_new()
{
	std::set_new_handler(new_handler);
	try {
		delete[] new char[~0UL >> 2];
	} catch (const std::bad_alloc &) {
		printf("after %d\n", tries);
	}
}

struct Generator {
	struct promise_type {
		int value = 0;
		Generator get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
		std::suspend_always initial_suspend() { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(int v) { value = v; return {}; }
		void return_void() {}
		void unhandled_exception() { throw; }
	};
	std::coroutine_handle<promise_type> handle;
};

static Generator numbers(int count, bool throws)
{
	auto block = std::make_unique<char[]>(73);

	for (int i = 0; i < count; i++)
		co_yield i + block[0];
	if (throws)
		throw std::runtime_error("within a coroutine");
}

static void coroutines()
{
	long sum = 0;
	int failed = 0;

	for (int i = 0; i < STEPS; i++) {
		Generator generator = numbers(i % 7, i % 3 == 0);

		try {
			for (generator.handle.resume(); !generator.handle.done(); generator.handle.resume())
				sum += generator.handle.promise().value;
		} catch (const std::runtime_error &) {
			failed++;
		}
		generator.handle.destroy();
	}
	printf("sum %ld, %d threw\n", sum, failed);
}

static void futures()
{
	std::vector<std::future<int>> made;
	int sum = 0, failed = 0;

	for (int i = 0; i < 23; i++)
		made.push_back(std::async(std::launch::async, [i] { return i % 5 ? i : throw std::out_of_range("five"); }));
	for (auto &future : made)
		try {
			sum += future.get();
		} catch (const std::out_of_range &) {
			failed++;
		}
	printf("sum %d, %d failed\n", sum, failed);
}

static void conditions()
{
	std::mutex mutex;
	std::condition_variable changed;
	int turn = 0;
	std::thread other([&] {
		for (int i = 0; i < 503; i++) {
			std::unique_lock lock(mutex);
			changed.wait(lock, [&] { return turn % 2 == 1; });
			turn++;
			changed.notify_all();
		}
	});

	for (int i = 0; i < 503; i++) {
		std::unique_lock lock(mutex);
		changed.wait(lock, [&] { return turn % 2 == 0; });
		turn++;
		changed.notify_all();
	}
	other.join();
	printf("%d turns\n", turn);
}

struct Local {
	Local() : text(new std::string("of a thread")) {}
	~Local() { cleaned += (int)text->size(); delete text; }
	std::string *text;
};
static thread_local Local local;

static void thread_locals()
{
	for (int i = 0; i < 101; i++)
		std::thread([] { (void)local.text->size(); }).join();
	printf("%d cleaned up\n", cleaned);
}

static std::jmp_buf from_handler;
static volatile sig_atomic_t jumps;

static void jump_out(int)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &set, nullptr);
	longjmp(from_handler, 1);
}

static void jumps_from_handlers()
{
	signal(SIGUSR1, jump_out);
	while (jumps < 211)
		if (setjmp(from_handler) == 0)
			raise(SIGUSR1);
		else
			jumps = jumps + 1;
	printf("%d jumps, %zu\n", (int)jumps, std::string(59 + jumps % 2, 'x').size());
}

static void containers()
{
	std::map<std::string, std::vector<int>> map;

	for (int i = 0; i < 2003; i++)
		map["key " + std::to_string(i % 101)].push_back(i);
	std::ostringstream out;
	for (auto &[key, list] : map)
		out << key << list.size() << list.back();
	std::cout << std::hash<std::string>()(out.str()) << ' ' << out.str().size() << std::endl;
}

static void expressions()
{
	std::regex words("([a-z]+)([0-9]*)");
	std::string text = "alpha1 beta22 gamma";
	auto begin = std::sregex_iterator(text.begin(), text.end(), words);

	for (auto i = begin; i != std::sregex_iterator(); ++i)
		std::cout << (*i)[1] << '/' << (*i)[2] << std::endl;
}

static void uncaught()
{
	throw std::runtime_error("of nobody");
}

static void by_terminate()
{
	std::set_terminate([] { printf("terminate\n"); fflush(stdout); _Exit(43); });
	uncaught();
}

static void within_noexcept() noexcept
{
	descend(2);
}

static const struct {
	const char *name;
	void (*run)();
} behaviours[] = {
	{"exceptions", exceptions}, {"exceptions_in_threads", exceptions_in_threads}, {"rethrown", rethrown},
	{"stored", stored}, {"through_c", through_c}, {"too_much", too_much}, {"handler_of_new", handler_of_new},
	{"coroutines", coroutines}, {"futures", futures}, {"conditions", conditions}, {"thread_locals", thread_locals},
	{"jumps_from_handlers", jumps_from_handlers}, {"containers", containers}, {"expressions", expressions},
	{"uncaught", uncaught}, {"by_terminate", by_terminate}, {"within_noexcept", within_noexcept},
};

int main(int argc, char **argv)
{
	char line[8];

	setvbuf(stdout, nullptr, _IOLBF, 0);
	if (getenv("BEHAVES_WAITS") && (puts("ready"), !fgets(line, sizeof(line), stdin)))
		return 3;
	for (auto &behaviour : behaviours)
		if (argc == 2 && !strcmp(argv[1], behaviour.name)) {
			behaviour.run();
			return 5;
		}
	fprintf(stderr, "usage: behaves_flow BEHAVIOUR\n");
	return 3;
}
