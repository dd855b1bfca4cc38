// Blocks that C++ keeps by pointers into their middle only, and some that it does not.
#include <cstdlib>
#include <cstring>

struct Counted {
	~Counted() { seen++; }
	static int seen;
	long value = 0, more = 0;
};
int Counted::seen;

struct First {
	virtual void first() {}
	virtual ~First() = default;
	long a = 1;
};
struct Second {
	virtual void second() {}
	virtual ~Second() = default;
	long b = 2;
};
struct Both : First, Second {
	void first() override {}
	void second() override {}
};

static Counted *volatile array;
static Second *volatile base;
static char *volatile sized;
static char *volatile inside;

__attribute__((noinline)) static void make_array() { array = new Counted[7]; }
__attribute__((noinline)) static void make_both() { base = new Both; }
__attribute__((noinline)) static void make_sized()
{
	long *made = (long *)malloc(8 + 104);

	*made = 104;
	sized = (char *)(made + 1);
}
__attribute__((noinline)) static void make_inside() { inside = (char *)malloc(200) + 40; }
__attribute__((noinline)) static void make_lost() 
{
	Counted *volatile made = new Counted[3];

	made = nullptr;
}

__attribute__((noinline)) static void wipe()
{
	char room[16384];

	memset(room, 0, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory", "rbx", "r12", "r13", "r14", "r15");
}

int main()
{
	make_array();
	make_both();
	make_sized();
	make_inside();
	make_lost();
	wipe();
	__asm__ volatile("xor %%ebx, %%ebx; xor %%r12d, %%r12d; xor %%r13d, %%r13d; xor %%r14d, %%r14d; xor %%r15d, %%r15d"
			 : : : "rbx", "r12", "r13", "r14", "r15");
	exit(0);
}
