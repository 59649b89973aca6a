"""Plain callables: dicts, lists, tuples and objects.

- `adapter`: wraps a team. `callables`: finds the agents of a team.
- `served`: runs a recorded team again.
"""
