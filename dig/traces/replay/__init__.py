"""Replay: repeats a recorded run, the same or changed.

- `header`: the description of a run in its journal. `recorded_requests`: its records, read ahead.
- `deliveries`: the recorded acts of delivery policies.
- `drive`: drives a monitor through the run. `rerun`: compares every record.
- `rewind`: brings the run to a record, for a fork. `rewind_state`: its state there, and the inputs
  after it.
- `changes`: all changes of a fork, as data. `kinds`: their order and words.
- `planned`: checks the changes and makes their requests. `edits`: puts in the edit of a record.
"""
