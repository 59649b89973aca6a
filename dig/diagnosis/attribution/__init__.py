"""Which agent and which step of a failed conversation is at fault, from its texts.

- `reading`: from a file to steps and roles. `flow`: words, code, facts, and loops in texts.
- `hierarchy`: the hierarchical graph. `wording`: features of a step. `ranking`: the answer by
  shipped weights. `fitting`: how weights are fitted.
- `explaining`: a conversation's diagnosis. `whowhen`: the benchmark.
"""
