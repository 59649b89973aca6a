"""Runs in a few figures each.

`summary`: one run; `index`: the runs of a directory, cached; `listing`: these as a table.
`pruning`: old runs, removed or compressed.
"""
