"""The journal: written, read, verified line by line and recovered."""
