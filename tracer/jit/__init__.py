"""Logs that JITs write of the code they make: perf maps and jitdumps."""
