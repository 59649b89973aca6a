"""The kinds of faults, a file a family: `messages`, `agents`, `coordination`.

The table of all kinds is `dig.faults.inject.fault_catalogue`.
"""
