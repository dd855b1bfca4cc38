"""The memory of processes, read for pointers to what is outstanding."""
