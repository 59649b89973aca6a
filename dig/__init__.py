"""Watch, explain and heal the collaboration of LLM agents, on a Dynamic Interaction Graph.

The map of the package, from the inside out:

- `dig.graph.records`: what can happen in a run, one type a kind; `dig.graph.codec`: as JSON.
- `dig.graph`: what it leads to. `dig.graph.rules`, `dig.graph.rewrites`, `dig.graph.state`, `dig.graph.history`,
  `dig.graph.lineage`, `dig.graph.coverage`, `dig._util.ranges`, `dig.graph.retention`, `dig.graph.views`, `dig.graph.notebook`: parts
  of the graph.
- `dig.graph.behaviour`: whether two runs are the same behaviour. `dig.graph.isomorphism`: part of it.
- `dig.detectors.finding`: what detectors raise. `dig.detectors.explain`: why. `dig.detectors.interventions`: what healing may do.
- `dig.detectors.protocols`: what detectors and healers are. `dig.detectors.watch`: a graph with detectors.
- `dig.monitor`: hold, detect, heal, release. `dig.monitor.recorder`, `dig.monitor.healing`, `dig.monitor.release`,
  `dig.monitor.gates`, `dig.monitor.schedule`, `dig.monitor.payloads`: parts of it. `dig.monitor.messages`: what goes in and
  out, and gates. `dig.monitor.sinks`: who is given every record.
- `dig._util.redaction`: what nobody may see is masked. `dig._util.json_values`, `dig._util.text`, `dig._util.html`: values from
  outside as JSON, as text and as tables.
- `dig.detectors`: the failure patterns and their healing. `dig.detectors.describe`: findings in words.
- `dig.runtime`: things that run: agents, the bus, the simulator, delivery policies.
- `dig.adapters.wrapping`: `dig.wrap`, for teams that exist already.
- `dig.traces`: what a run leaves. `dig.tasks`: experiments. `dig.testing`: for tests of a team.
- `dig.cli`: the command `digmon`.

Only the core is exported here, so that importing it is quick and pulls in no framework.
"""

from __future__ import annotations

import typing

from dig.detectors.explain import explain
from dig.detectors.finding import Finding
from dig.detectors.interventions import Budget, Create, Inject, Reroute
from dig.detectors.protocols import Detector, Healer
from dig.detectors.watch import Watch
from dig.graph.behaviour import same_behaviour, signature
from dig.graph.graph import InteractionGraph
from dig.graph.records import Fate, Limits, Record
from dig.monitor.messages import Gate, Hold, Output, Pending, Step
from dig.monitor.monitor import Monitor

from ._version import __version__ as __version__
from .errors import DigError

if typing.TYPE_CHECKING:
    from dig.adapters import notes
    from dig.adapters.wrapping import session_of, unwrap, wrap

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
            return getattr(import_module("dig.adapters"), name)
        if name in ("session_of", "unwrap", "wrap"):
            return getattr(import_module("dig.adapters.wrapping"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
