"""Symbolization at report time: frame keys to functions, files and lines."""

from tracer.symbols.mismatches import mismatched
from tracer.symbols.options import SymbolOptions
from tracer.symbols.symbolizer import Symbolizer, symbolize

__all__ = ["SymbolOptions", "Symbolizer", "mismatched", "symbolize"]
