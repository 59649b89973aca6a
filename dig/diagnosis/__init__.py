"""Why a run failed, and when it is good.

- `concepts`: the words of a diagnosis.
- `goal`: when a finished run is good; `progress`: how far it came; `failures`: by what it is not
  good. `learning`: what good runs of a team raise.
- `causes`: the graph of causes, from a root cause to the failure.
- `components`: which agents, activations and events a component consists of.
"""
