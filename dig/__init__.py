"""Watch, explain and heal the collaboration of LLM agents, on a Dynamic Interaction Graph.

The map of the package, from the inside out. Each package imports only from those above it, with one
exception: `dig.cli` and `dig.lab.cli` import each other.

- `dig.errors`: the tree of exceptions. `dig._util`: text, JSON and other helpers. `dig._version`.
- `dig.graph`: the record vocabulary, and the graph that records lead to.
- `dig.detectors`: the failure patterns, how findings are explained, and the healing of each.
- `dig.monitor`: hold, detect, heal, release.
- `dig.runtime`: agents, and what runs them: the bus, the simulator, language models.
- `dig.traces`: the journal, replay and fork, imports and exports, OpenTelemetry.
- `dig.show`: the report page, the live view, figures, the terminal, comparisons.
- `dig.adapters`: `dig.wrap`, for teams that exist already; one folder per framework.
- `dig.tasks`: tasks, simulated teams, runs. `dig.testing`: for tests of a team.
- `dig.diagnosis`: why a run failed.
- `dig.faults`: known faults to inject.
- `dig.lab`: evaluation only: benchmarks, experiments, and what the monitor is compared with.
- `dig.cli`: the command `digmon`.

Only the core is exported here, so that importing it pulls in no framework; and it is imported when
something of it is asked for, since `digmon --help` needs none of it.
"""

from __future__ import annotations

import typing
from importlib import import_module

from dig._util.on_demand import names_on_demand

from ._version import __version__ as __version__

if typing.TYPE_CHECKING:
    from dig.adapters import notes as notes
    from dig.adapters import notes_about as notes_about
    from dig.adapters import report_usage as report_usage
    from dig.adapters import waiting as waiting
    from dig.adapters.nats import join as join
    from dig.adapters.wrapping import session_of as session_of
    from dig.adapters.wrapping import unwrap as unwrap
    from dig.adapters.wrapping import wrap as wrap
    from dig.detectors.describe import explain as explain
    from dig.detectors.finding import Finding as Finding
    from dig.detectors.interventions import Budget as Budget
    from dig.detectors.interventions import Create as Create
    from dig.detectors.interventions import Inject as Inject
    from dig.detectors.interventions import Reroute as Reroute
    from dig.detectors.protocols import Detector as Detector
    from dig.detectors.protocols import Healer as Healer
    from dig.detectors.spending_limits import Price as Price
    from dig.detectors.spending_limits import SpendingLimits as SpendingLimits
    from dig.detectors.spending_limits import TeamBudget as TeamBudget
    from dig.detectors.watch import Watch as Watch
    from dig.graph.behaviour import same_behaviour as same_behaviour
    from dig.graph.behaviour import signature as signature
    from dig.graph.graph import InteractionGraph as InteractionGraph
    from dig.graph.records import Fate as Fate
    from dig.graph.records import Limits as Limits
    from dig.graph.records import Record as Record
    from dig.monitor.messages import About as About
    from dig.monitor.messages import Gate as Gate
    from dig.monitor.messages import Hold as Hold
    from dig.monitor.messages import Output as Output
    from dig.monitor.messages import Pending as Pending
    from dig.monitor.messages import Step as Step
    from dig.monitor.monitor import Monitor as Monitor
    from dig.runtime.bus import run as run

    from .errors import BudgetExceeded as BudgetExceeded
    from .errors import DigError as DigError

_HOME, _get, _list = names_on_demand(
    __name__,
    {
        "dig.adapters": "notes notes_about report_usage waiting",
        "dig.adapters.nats": "join",
        "dig.adapters.wrapping": "session_of unwrap wrap",
        "dig.detectors.spending_limits": "Price SpendingLimits TeamBudget",
        "dig.detectors.describe": "explain",
        "dig.detectors.finding": "Finding",
        "dig.detectors.interventions": "Budget Create Inject Reroute",
        "dig.detectors.protocols": "Detector Healer",
        "dig.detectors.watch": "Watch",
        "dig.errors": "BudgetExceeded DigError",
        "dig.graph.behaviour": "same_behaviour signature",
        "dig.graph.graph": "InteractionGraph",
        "dig.graph.records": "Fate Limits Record",
        "dig.monitor.messages": "About Gate Hold Output Pending Step",
        "dig.monitor.monitor": "Monitor",
        "dig.runtime.bus": "run",
    },
)

__all__ = sorted(_HOME)

_PACKAGES = ("detectors", "errors", "graph", "monitor")
"""The packages of the core, which `dig` has as if it had imported them."""


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _PACKAGES:
            return import_module(f"dig.{name}")
        return _get(name)

    def __dir__() -> list[str]:
        return sorted({*_list(), *_PACKAGES})
