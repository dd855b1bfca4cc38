"""Interpreters: their structs, code and frames, a folder for each language."""
