// Virtual classes: what an object is, its constructor has written there when it returns.
#define NOINLINE __attribute__((noinline, noipa))

namespace net {
struct Counted {
	NOINLINE Counted() : references(1) {}
	NOINLINE virtual ~Counted() {}
	int references;
};

struct Conn : Counted {
	NOINLINE Conn() {}
	NOINLINE ~Conn() override {}
};

template <typename T> struct Queue : Counted {
	NOINLINE Queue() : last() {}
	NOINLINE ~Queue() override {}
	T last;
};
}

extern "C" NOINLINE void counted_get(net::Counted *c)
{
	c->references++;
}

extern "C" NOINLINE void counted_put(net::Counted *c)
{
	if (!--c->references)
		delete c;
}

int main()
{
	for (int i = 0; i < 4; i++)
		counted_put(new net::Conn);
	for (int i = 0; i < 2; i++) {
		net::Counted *c = new net::Queue<int>;

		counted_get(c);
		counted_put(c);
	}
	return 0;
}
