"""Sites of operations in a binary, and the cheapest instruction to see each."""
