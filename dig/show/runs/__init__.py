"""Runs in a few figures each.

`summary`: one run; `index`: those of a directory, remembered; `listing`: as a table.
"""
