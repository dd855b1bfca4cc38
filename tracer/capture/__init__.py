"""One trace: set up, followed, run to its end, and its Snapshot."""
