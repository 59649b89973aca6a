"""Drives a monitor through a recorded run, request by request.

- `recorded_requests`: the records of the run, read ahead. `deliveries`: the recorded acts of
  delivery policies.
- `drive`: makes the requests again, and compares the records. `edits`: puts in the edit of one.
- `rewind_state`: the state of the run at a record, and the inputs after it.
"""
