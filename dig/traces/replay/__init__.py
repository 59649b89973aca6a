"""Replay: repeats a recorded run, the same or changed.

- `header`: the description of a run in its journal. `tape`: its records, read ahead.
- `rerun`: drives a monitor through the run (`dig.runtime.driver`), and compares every record.
- `rewind`: brings the run to a record, for a fork.
- `changes`: all changes of a fork, as data. `kinds`: their order and words.
- `planned`: checks the changes and makes their requests.
"""
