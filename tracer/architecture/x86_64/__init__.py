"""x86-64: all of it that Python needs to know."""
