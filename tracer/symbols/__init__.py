"""Symbolization at report time: frame keys to functions, files and lines."""

from typing import TYPE_CHECKING

from tracer.lazy_names import names_of

if TYPE_CHECKING:
    from tracer.symbols.mismatches import mismatched
    from tracer.symbols.options import SymbolOptions
    from tracer.symbols.symbolizer import Symbolizer, symbolize
else:
    __getattr__ = names_of(__name__, {
        "mismatched": "mismatches", "SymbolOptions": "options", "Symbolizer": "symbolizer", "symbolize": "symbolizer",
    })  # fmt: skip

__all__ = ["SymbolOptions", "Symbolizer", "mismatched", "symbolize"]
