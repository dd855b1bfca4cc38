"""The architecture: registers, calling convention, and what code does."""
