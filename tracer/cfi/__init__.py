"""Call frame information: rows, rules and unwind tables."""
