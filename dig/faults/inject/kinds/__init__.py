"""The kinds of faults, one a file; the table of them is `dig.faults.inject.catalogue`."""
