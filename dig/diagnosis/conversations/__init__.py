"""Attribution of a failed conversation to an agent and a step, by the text of the log.

- `reading`: from a file to steps and roles. `flow`: words, code, facts and loops in texts.
- `hierarchy`: the hierarchical graph, and its draft. `wording`: features of a step.
- `ranking`: the answer by shipped weights. `explaining`: the diagnosis of a conversation.
"""
