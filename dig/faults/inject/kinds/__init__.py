"""The kinds of faults, one file per family: `messages`, `agents`, `coordination`.

The table of all kinds is `dig.faults.inject.fault_catalogue`.
"""
