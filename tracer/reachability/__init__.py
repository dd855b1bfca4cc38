"""Reachability of blocks: pure functions of memory that was read and a table of blocks."""
