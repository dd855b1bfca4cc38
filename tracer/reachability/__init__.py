"""Which blocks something still points at: pure functions of memory that was read and a table of blocks."""
