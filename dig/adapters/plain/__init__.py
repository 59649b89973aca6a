"""Plain callables: dicts, lists, tuples and objects."""
