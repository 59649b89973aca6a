"""Interchange: traces from and to the formats of other programs.

- `imports`: the table of readers. `scribe`: writes the records, and keeps count of guesses.
- `message_log`: plain messages. `turns`, `conversation`: the activations between them.
- `exports`: the table of writers.
"""
