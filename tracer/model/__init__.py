"""Data that flow through refleak."""
