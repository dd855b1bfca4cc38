"""The books of counted objects and mapped memory, kept from the event ring's records."""
