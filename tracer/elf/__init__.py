"""ELF files: their symbols, debug files and the loader's list."""
