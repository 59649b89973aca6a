"""The Dynamic Interaction Graph: the record vocabulary, and the graph that records build.

- `records`: the kinds of records, one type a kind; `codec`: records as lines of JSON.
- `graph`: `InteractionGraph`, whose `apply` is the only way to change a graph. Its parts:
  `state` is the data, `rules` checks a record, `rewrites` applies it, `history` keeps closed events
  and activations in compact arrays, `lineage` and `coverage` walk back through them, `retention`
  drops history in a long session.
- `views`: cut-outs, networkx, and the HTML that a notebook shows of a graph.
- `behaviour`: compares the behaviour of two runs, by means of `isomorphism`.
"""

from __future__ import annotations

from .behaviour import same_behaviour, signature
from .graph import InteractionGraph

__all__ = ["InteractionGraph", "same_behaviour", "signature"]
