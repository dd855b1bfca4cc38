"""Layer 1: how interpreters lay out their frames and line tables."""
