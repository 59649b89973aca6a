"""Diagnosis: the reasons of a failed run, and the changes that help.

    found = diagnose(Path("runs/ID"), trying=Trying())
    print(found.answer, found.fix)

- `dig.show.document`: the words of a diagnosis, and the document of them; `reporting` makes it.
- `goal`: when a finished run is good; `progress`: how far it came; `failures`: by what it is not
  good. `learning`: what good runs of a team raise.
- `attempts`: the parts of a run that try to solve a problem by one plan. `case`: a run that is
  explained. `suspects`: what names candidates.
- `interventions`: what can be changed in a run. `trials`: replays with a change and without it,
  and the verdict. `experiments`: their order. `diagnosing`: all of it. `telling`: it in lines.
  `pictures`: the page of a conversation.
- `signs`: odd acts of agents. `attribution`: which agent and step of a run is at fault, by signs;
  `conversations`: of a conversation, by its text; `stages`: by a language model.
- `causes`: the graph of causes, from a root cause to the failure.
- `components`: which agents, activations and events a component consists of.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dig.show.document import Candidate, Diagnosis, Hypothesis

    from .case import Case, read_case
    from .diagnosing import diagnose, diagnose_async, try_changes, verify
    from .goal import Goal
    from .suspects import Suspects
    from .trials.arms import Tried
    from .trials.replays import TrialBudget, Trying
    from .trials.significance import verdict

_HOME = {
    "Case": ".case", "read_case": ".case",
    "Trying": ".trials.replays", "diagnose": ".diagnosing", "diagnose_async": ".diagnosing",
    "try_changes": ".diagnosing", "verify": ".diagnosing",
    "Candidate": "dig.show.document", "Hypothesis": "dig.show.document",
    "Diagnosis": "dig.show.document", "Goal": ".goal", "Suspects": ".suspects",
    "TrialBudget": ".trials.replays", "Tried": ".trials.arms", "verdict": ".trials.significance",
}  # fmt: skip
"""The names of the package, by module; a module is imported on demand, since tasks load slowly."""

__all__ = [
    "Candidate", "Case", "Diagnosis", "Goal", "Hypothesis", "Suspects", "TrialBudget", "Tried",
    "Trying", "diagnose", "diagnose_async", "read_case", "try_changes", "verdict", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name], __name__), name)
