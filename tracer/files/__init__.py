"""Files that others may have put there: opened so that nothing hangs, and nothing but a plain file is read."""
