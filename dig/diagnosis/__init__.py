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

from typing import TYPE_CHECKING

from dig._util.on_demand import names_on_demand

if TYPE_CHECKING:
    from dig.show.document import Candidate, Diagnosis, Hypothesis

    from .case import Case, read_case
    from .diagnosing import diagnose, diagnose_async, try_changes, verify
    from .goal import Goal
    from .suspects import Suspects
    from .trials.arms import Tried
    from .trials.replays import TrialBudget, Trying
    from .trials.significance import verdict

__all__ = [
    "Candidate", "Case", "Diagnosis", "Goal", "Hypothesis", "Suspects", "TrialBudget", "Tried",
    "Trying", "diagnose", "diagnose_async", "read_case", "try_changes", "verdict", "verify",
]  # fmt: skip

# Tasks load slowly.
_HOME, __getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "dig.show.document": "Candidate Diagnosis Hypothesis",
        ".case": "Case read_case",
        ".diagnosing": "diagnose diagnose_async try_changes verify",
        ".goal": "Goal",
        ".suspects": "Suspects",
        ".trials.arms": "Tried",
        ".trials.replays": "TrialBudget Trying",
        ".trials.significance": "verdict",
    },
)
