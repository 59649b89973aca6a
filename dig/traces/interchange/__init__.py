"""Interchange: traces from and to the formats of other programs.

- `imports`: the table of readers. `source_files`: files as text. `scribe`: writes the records, and
  keeps count of guesses and of patterns that a source cannot show. `turn_writer`: turns as records.
- `message_log`: plain messages. `chat_turns`, `conversation`: the activations between them.
- `spans`: agents' spans of OpenTelemetry, with `span_rows` (the files), `span_words` (what their
  attributes say), `workflow_spans` (LlamaIndex's agents) and `calls` (calls between turns);
  `own_spans`: those of our export.
- `coding_sessions`, `inboxes`, `trajectories`: files of coding agents. `talks`: what they say of an
  agent. `threads`: the records of it.
- `joined_runs`: journals of several processes as one run.
- `exports`: the table of writers.
"""
