"""Comparisons: whether two runs have the same behaviour, and where they differ first.

`golden`: a behaviour as a file; `difference`: the differences; `side_by_side`: these in lines;
`continued`: a run and its fork.
"""
