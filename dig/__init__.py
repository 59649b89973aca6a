"""Watch, explain and heal the collaboration of LLM agents, on a Dynamic Interaction Graph.

The map of the package, from the inside out:

- `dig.records`: what can happen in a run, one type a kind; `dig.codec`: as JSON.
- `dig.graph`: what it leads to. `dig.rules`, `dig.rewrites`, `dig.state`, `dig.history`,
  `dig.lineage`, `dig.coverage`, `dig.ranges`, `dig.retention`, `dig.views`, `dig.notebook`: parts
  of the graph.
- `dig.behaviour`: whether two runs are the same behaviour. `dig.isomorphism`: part of it.
- `dig.finding`: what detectors raise. `dig.explain`: why. `dig.findings`: what healing may do.
- `dig.protocols`: what detectors and healers are. `dig.watch`: a graph with detectors.
- `dig.monitor`: hold, detect, heal, release. `dig.ledger`, `dig.treatment`, `dig.release`,
  `dig.gates`, `dig.policies`, `dig.postbox`: parts of it. `dig.messages`: what goes in and
  out, and gates. `dig.followers`: who is given every record.
- `dig.redaction`: what nobody may see is masked. `dig.plain`, `dig.text`, `dig.html`: values from
  outside as JSON, as text and as tables.
- `dig.detectors`: the failure patterns and their healing. `dig.describe`: findings in words.
- `dig.runtime`: things that run: agents, the bus, the simulator, delivery policies.
- `dig.wrapping`: `dig.wrap`, for teams that exist already.
- `dig.traces`: what a run leaves. `dig.tasks`: experiments. `dig.testing`: for tests of a team.
- `dig.cli`: the command `digmon`.

Only the core is exported here, so that importing it is quick and pulls in no framework.
"""

from __future__ import annotations

import typing

from ._version import __version__ as __version__
from .behaviour import same_behaviour, signature
from .errors import DigError
from .explain import explain
from .finding import Finding
from .findings import Budget, Create, Inject, Reroute
from .graph import InteractionGraph
from .messages import Gate, Hold, Output, Pending, Step
from .monitor import Monitor
from .protocols import Detector, Healer
from .records import Fate, Limits, Record
from .watch import Watch

if typing.TYPE_CHECKING:
    from dig.runtime.wrap import notes

    from .wrapping import session_of, unwrap, wrap

__all__ = [
    "Budget",
    "Create",
    "Detector",
    "DigError",
    "Fate",
    "Finding",
    "Gate",
    "Healer",
    "Hold",
    "Inject",
    "InteractionGraph",
    "Limits",
    "Monitor",
    "Output",
    "Pending",
    "Record",
    "Reroute",
    "Step",
    "Watch",
    "explain",
    "notes",
    "same_behaviour",
    "session_of",
    "signature",
    "unwrap",
    "wrap",
]


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """What stands above the core is imported when it is asked for: the wrapping of teams."""
        from importlib import import_module

        if name == "notes":
            return getattr(import_module("dig.runtime.wrap"), name)
        if name in ("session_of", "unwrap", "wrap"):
            return getattr(import_module("dig.wrapping"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
