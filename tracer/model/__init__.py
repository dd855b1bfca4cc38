"""Layer 0: the data that flow through refleak."""
