"""The library of --preload: its source, how it is made, and where it is kept."""
