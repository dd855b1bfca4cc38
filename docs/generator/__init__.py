"""What is generated from the parsers of the command line."""
