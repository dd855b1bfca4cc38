"""Address spaces: what each maps, and the tables by which the kernel side unwinds in it."""
