# `make demo` and `make test` do everything on a fresh Debian 12 machine, as root or with sudo.

PYTHON := .venv/bin/python
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
RUN_PACKAGES := python3-bpfcc python3-venv gcc libc6-dev binutils llvm
PRESET_PACKAGES := pkg-config libglib2.0-dev libssl-dev libjson-c-dev libcurl4-openssl-dev libcairo2-dev libdbus-1-dev \
	libkmod-dev libudev-dev libsystemd-dev libwayland-dev libavutil-dev libsqlite3-dev
TEST_PACKAGES := g++ musl-tools clang lld gdb elfutils git sqlite3 xz-utils valgrind strace groff-base bash-completion zsh fish \
	tmux chromium google-perftools libjemalloc2 libjemalloc-dev libmimalloc-dev golang-go lua5.1 lua5.2 lua5.3 lua5.4 luajit nodejs \
	$(PRESET_PACKAGES)
BENCH_PACKAGES := gcc libc6-dev git sqlite3 bpfcc-tools bpftrace heaptrack valgrind
# What refleak's Debian package depends on: a test runs it without .venv.
DEB_PACKAGES := python3-numpy python3-psutil python3-tabulate python3-capstone python3-rich
KERNEL_PACKAGES := qemu-system-x86 busybox-static kmod file
KERNELS := 6.1 6.12 7.2
KERNEL_SUITE := smoke
CFLAGS_DEMO := -g -O2 -Wall -Wextra

.PHONY: help venv demo test fuzz test-kernels lint bench perf docs deb clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo   install what is missing, trace examples/demo/leaky and print the report'
	@echo 'make test   install what is missing and run all tests (kernel tests need root)'
	@echo 'make fuzz   damaged input for every reader, a minute; SECONDS=3600 for an hour'
	@echo 'make test-kernels  what is found on kernels of the distribution, and the smoke suite (KERNELS, KERNEL_SUITE)'
	@echo 'make lint   ruff and mypy; clang with its warnings on all BPF sources'
	@echo 'make bench  the benchmark of docs/performance.md'
	@echo 'make perf   build perf with the stubs and trace it (examples/perf)'
	@echo 'make docs   write the pages of docs/commands, the manual page and the completion again'
	@echo 'make deb    build the Debian package in dist/'
	@echo 'make clean  remove what was built; .venv stays'

# System packages are visible inside: BCC is one of the distribution's.
.venv/runs: pyproject.toml
	.ci/install $(RUN_PACKAGES)
	test -x $(PYTHON) || /usr/bin/python3 -m venv --system-site-packages .venv
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/installed: .venv/runs
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

venv: .venv/installed

examples/demo/leaky: examples/demo/leaky.c examples/refleak.h
	$(CC) $(CFLAGS_DEMO) -o $@ $<

demo: .venv/runs examples/demo/leaky
	$(SUDO) ./refleak --exec examples/demo/leaky

test: venv
	.ci/install $(TEST_PACKAGES) $(DEB_PACKAGES)
	-examples/perf/build.sh
	-examples/perf/build.sh --unmodified
	$(PYTHON) -m pytest tests

# An hour: make fuzz SECONDS=3600
SECONDS := 60
fuzz: venv
	$(PYTHON) tests/unit/fuzz/fuzz_run.py $(SECONDS)
# In virtual machines: docs/kernels.md.
test-kernels: venv
	.ci/install $(TEST_PACKAGES) $(KERNEL_PACKAGES)
	$(PYTHON) -m tests.kernels --suite verdicts --write docs/kernels.md here $(KERNELS)
	$(PYTHON) -m tests.kernels --suite $(KERNEL_SUITE) --write docs/kernels.md $(KERNELS)

lint: venv
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	MYPYPATH=.:examples/mutants $(PYTHON) -m mypy $(wildcard examples/mutants/*.py) examples/dbus/clients.py
	.ci/install clang clang-format
	$(PYTHON) .ci/compile-bpf

# A peer that cannot be installed is reported as absent.
bench: venv
	-.ci/install $(BENCH_PACKAGES)
	$(SUDO) $(PYTHON) -m benchmarks

perf: venv
	examples/perf/run.sh

docs: venv
	$(PYTHON) docs/generate.py

deb:
	packaging/build-deb.sh

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis examples/demo/leaky examples/perf/build examples/dbus/build \
		examples/glib/build examples/gio/build
	rm -rf tests/kernel/targets/build
	find . -name .venv -prune -o -name __pycache__ -type d -print | xargs rm -rf
