"""Mutants of perf, to measure how often refleak names the get that was never put: see docs/pairing.md."""
