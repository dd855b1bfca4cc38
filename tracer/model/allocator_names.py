"""The allocators that take the place of libc's, by the names of their libraries."""

ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc", "snmalloc", "hoard", "scudo")
"""`lib` before it, and any word and suffix behind: libtcmalloc_minimal.so.4, libsnmallocshim.so."""
