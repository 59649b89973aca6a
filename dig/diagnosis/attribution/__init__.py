"""From signs, or the texts of a conversation, to the agent and step at fault.

Of a run: `structural` (which signs explain the failure, and one another) and `work` (which events
led to its answer). Of a conversation:

- `reading`: from a file to steps and roles. `flow`: words, code, facts and loops in texts.
  `hierarchy`: the hierarchical graph, and its draft.
- `wording`: features of a step. `ranking`: the answer by shipped weights. `fitting`: how weights
  are fitted. `whowhen`: the benchmark. `explaining`: the diagnosis of a conversation.
- With a model: `requests` (what it is shown), `stages` (what it is asked), `asking` (its cache),
  `deciding` (from testimony to an answer), `pipeline` (all of it), `rivals` (plain ways to ask).
"""
