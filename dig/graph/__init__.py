"""The Dynamic Interaction Graph: the record vocabulary, and the graph built from records.

- `records`: the kinds of records, one type per kind; `codec`: records as lines of JSON;
  `chain`: the lines of a journal, each with a checksum; `words`: records and decisions as text.
- `graph`: `InteractionGraph`, whose `apply` is the only way to change a graph. Its parts:
  `graph_state` is the data and its queries, `state` the objects for what can still change,
  `problems` what is open about each problem, `history` closed events and activations in compact
  arrays; `rules` checks a record, `rewrites` applies it, `lineage` and `coverage` walk back through
  the history, `retention` drops some of it in a long session.
- `views`: cut-outs, networkx, and the HTML that a notebook shows of a graph.
- `behaviour`: compares the behaviour of two runs, by means of `isomorphism`.
"""

from __future__ import annotations

from .behaviour import same_behaviour, signature
from .graph import InteractionGraph

__all__ = ["InteractionGraph", "same_behaviour", "signature"]
