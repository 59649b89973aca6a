"""Watch, explain and heal the collaboration of LLM agents, on a Dynamic Interaction Graph.

The map of the package, from the inside out; each package imports from those above it alone:

- `dig.errors`: the tree of exceptions. `dig._util`: text, JSON and other helpers. `dig._version`.
- `dig.graph`: the record vocabulary, and the graph that records lead to.
- `dig.detectors`: the failure patterns, how findings are explained, and the healing of each.
- `dig.monitor`: hold, detect, heal, release.
- `dig.runtime`: agents, and what runs them: the bus, the simulator, language models.
- `dig.traces`: the journal, replay and fork, imports and exports, OpenTelemetry.
- `dig.show`: the report page, the live view, figures, the terminal, comparisons.
- `dig.adapters`: `dig.wrap`, for teams that exist already; a folder a framework.
- `dig.tasks`: tasks, simulated teams, experiments. `dig.testing`: for tests of a team.
- `dig.diagnosis`: why a run failed.
- `dig.faults`: known faults to inject, the truth about them, and the benchmark made of them.
- `dig.cli`: the command `digmon`.

Only the core is exported here, so that importing it is quick and pulls in no framework.
"""

from __future__ import annotations

import typing

from dig.detectors.describe import explain
from dig.detectors.finding import Finding
from dig.detectors.interventions import Budget, Create, Inject, Reroute
from dig.detectors.protocols import Detector, Healer
from dig.detectors.watch import Watch
from dig.graph.behaviour import same_behaviour, signature
from dig.graph.graph import InteractionGraph
from dig.graph.records import Fate, Limits, Record
from dig.monitor.messages import About, Gate, Hold, Output, Pending, Step
from dig.monitor.monitor import Monitor

from ._version import __version__ as __version__
from .errors import DigError

if typing.TYPE_CHECKING:
    from dig.adapters import notes, notes_about
    from dig.adapters.wrapping import session_of, unwrap, wrap

__all__ = [
    "About",
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
    "notes_about",
    "same_behaviour",
    "session_of",
    "signature",
    "unwrap",
    "wrap",
]


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import the wrapping of teams, which stands above the core, when it is asked for."""
        from importlib import import_module

        if name in ("notes", "notes_about"):
            return getattr(import_module("dig.adapters"), name)
        if name in ("session_of", "unwrap", "wrap"):
            return getattr(import_module("dig.adapters.wrapping"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
