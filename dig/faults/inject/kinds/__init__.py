"""The kinds of faults, a file a family; the table of them is `dig.faults.inject.catalogue`."""
