"""Snapshots kept in a file: docs/recording-format.md."""
