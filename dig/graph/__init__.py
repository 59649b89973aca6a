"""The Dynamic Interaction Graph: the record vocabulary, and what records lead to.

- `records`: all that can happen in a run, one type a kind; `codec`: records as lines of JSON.
- `graph`: `InteractionGraph`, whose `apply` is the only way to change a graph. Its parts:
  `state` is the data, `rules` checks a record, `rewrites` applies it, `history` keeps closed events
  and activations in compact arrays, `lineage` and `coverage` walk back through them, `retention`
  drops history in a long session.
- `views`: cut-outs, and networkx. `notebook`: how a graph is shown in a notebook.
- `behaviour`: whether two runs are the same behaviour; `isomorphism` is part of that.
"""

from __future__ import annotations

from .behaviour import same_behaviour, signature
from .graph import InteractionGraph

__all__ = ["InteractionGraph", "same_behaviour", "signature"]
