"""CPython: where it keeps frames, code and lines."""
