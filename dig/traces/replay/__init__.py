"""Replay: repeats a recorded run, the same or changed.

- `header`: the description of the run in its journal. `requests`: its records, read ahead.
- `deliveries`: what delivery policies did in it.
- `drive`: drives a monitor through the run. `rerun`: compares every record.
- `fork`: continues the run from a record. `rewinding`: its state there, and what was to come.
- `edits`: one record that is otherwise in a fork. `changes`: all changes of a fork, as data.
- `planned`: carries them out; lists what can be changed.
"""
