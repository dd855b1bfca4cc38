"""Aggregation of the event ring's records: counted objects and mapped memory."""
