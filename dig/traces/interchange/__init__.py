"""What other programs recorded, as traces.

- `imports`: the table of formats. `scribe`: writes the records, and keeps count of guesses.
- `message_log`, `chat`: plain messages, and the activations there must have been between them.
- `reference`, `reference_nodes`: graphs of the reference implementation. `schedule`,
  `reconstruction`: the order of records that leads to one.
"""
