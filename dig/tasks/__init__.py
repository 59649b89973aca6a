"""Tasks that a team can be given, agents that solve them, and experiments with both.

- `task`: what a task is. `catalogue`: those that can be named.
- `count_frequency`, `newsgroups`: counting the values of an array, and the topics of posts, with
  tools and scorer. `frequency`: what they have in common.
- `simulated`: agents that work in virtual time, without a language model. `general_agent`: those
  with one. `judge`: a rival of the monitor.
- `run`: one run. `experiment`: grids of them.
"""
