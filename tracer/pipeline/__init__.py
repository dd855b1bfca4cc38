"""Pipeline from a command, a process or a recording to findings: each step once, for every way to start refleak."""
