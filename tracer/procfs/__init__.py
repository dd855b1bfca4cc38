"""Facts of /proc about processes."""
