"""Unwinding in user space, from dumps of stacks."""
