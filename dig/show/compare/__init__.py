"""Comparisons of two runs: same behaviour or not, and the first differences.

`golden`: a behaviour as a file; `difference`: two behaviours compared; `side_by_side`: two stored
runs compared, with the decisions of a run and its fork.
"""
