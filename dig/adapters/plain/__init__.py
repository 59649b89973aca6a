"""Plain async callables: dicts, lists and objects."""
