"""The target's binaries: each opened once, and which of them a program starts with."""
