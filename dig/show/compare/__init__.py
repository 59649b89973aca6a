"""Comparisons: whether two runs have the same behaviour, and where they differ first.

`golden`: a behaviour as a file; `difference`: two behaviours compared; `side_by_side`: two stored
runs compared, with the decisions of a run and its fork.
"""
