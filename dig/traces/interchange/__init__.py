"""Interchange: traces from and to the formats of other programs.

- `imports`: the table of readers. `scribe`: writes the records, and keeps count of guesses.
- `message_log`: plain messages. `turns`, `conversation`: the activations between them.
- `spans`: agents' spans of OpenTelemetry, with `span_rows` (the files), `span_words` (what their
  attributes say) and `calls` (turns as records); `own_spans`: those of our export.
- `exports`: the table of writers.
"""
