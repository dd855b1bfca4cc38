"""DWARF: entries, attributes, expressions, and what they say of functions."""
