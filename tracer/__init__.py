"""refleak: trace reference counts and allocations of unmodified processes."""

__version__ = "0.1.0"
