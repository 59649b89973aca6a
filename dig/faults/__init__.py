"""Faults that are known: injected, followed to their consequences, and scored against."""
