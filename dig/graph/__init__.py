"""The Dynamic Interaction Graph: the record vocabulary, and the graph built from records.

- `records`: the kinds of records, one type per kind; `codec`: records as lines of JSON;
  `chain`: the lines of a journal, each with a checksum; `words`: records and decisions as text.
- `graph`: `InteractionGraph`, whose `apply` is the only way to change a graph. Its parts:
  `graph_state` is the data and its queries, `state` the objects for what can still change,
  `problems` what is open about each problem, `history` closed events and activations in compact
  arrays; `rules` checks a record, `rewrites` applies it, `lineage` and `coverage` walk back through
  the history, `retention` drops some of it in a long session.
- `turns`: which activations start a turn, and which go on with one.
- `views`: cut-outs, networkx, and the HTML that a notebook shows of a graph.
- `behaviour`: compares the behaviour of two runs, by means of `isomorphism`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dig._util.on_demand import names_on_demand

from .graph import InteractionGraph

if TYPE_CHECKING:
    from .behaviour import same_behaviour, signature

__all__ = ["InteractionGraph", "same_behaviour", "signature"]

# Few programs compare runs.
_HOME, __getattr__, __dir__ = names_on_demand(__name__, {".behaviour": "same_behaviour signature"})
