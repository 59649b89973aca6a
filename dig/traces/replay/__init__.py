"""Replay: repeats a recorded run, the same or changed.

- `header`: the description of the run in its journal. `requests`: its records, read ahead.
- `drive`: drives a monitor through the run. `rerun`: compares every record.
- `fork`: continues the run from a record. `edits`: the changes that a fork can make.
"""
