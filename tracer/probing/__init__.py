"""Probes on the binaries of processes."""
