"""Why a run failed, and when it is good.

- `goal`: when a finished run is good; `learning`: what good runs of a team raise.
- `causes`: the graph of causes, from a root cause to the failure.
- `components`: which agents, activations and events a component consists of.
"""
