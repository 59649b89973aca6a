"""Attribution: which agent and which step is at fault, from signs or from the text of a log.

- Traces. `structural`: which signs explain the failure, and which explain one another. `work`:
  which events of a run led to its answer. `spread`: the way from the cause to the end.
- Conversations. `reading`: from a file to steps and roles. `flow`: words, code, facts and loops in
  texts. `hierarchy`: the hierarchical graph, and its draft. `wording`: features of a step.
  `ranking`: the answer by shipped weights. `fitting`: how weights are fitted. `whowhen`: the
  benchmark. `explaining`: the diagnosis of a conversation.
- With a model: `traces` (a trace as a conversation), `requests` (what it is shown), `stages` (what
  it is asked), `shapes` (of its answers), `asking` (its cache), `deciding` (from testimony to an
  answer), `pipeline` (all of it), `rivals` (plain ways to ask).
"""
