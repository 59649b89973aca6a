"""Interchange: traces from and to the formats of other programs.

- `imports`: the table of readers. `scribe`: writes the records, and keeps count of guesses.
- `message_log`, `chat`: plain messages, and the activations that must have been between them.
- `reference`, `reference_nodes`: graphs of the reference implementation. `schedule`,
  `reconstruction`: the order of records that leads to one.
- `export`: the table of writers.
"""
