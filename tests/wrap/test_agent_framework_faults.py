"""Microsoft agent-framework, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)


from dig import Hold, Inject
from dig.detectors import standard, standard_healers
from dig.runtime.host import Setup
from dig.runtime.wrap import Session, Turn
from dig.runtime.wrap import agent_framework as adapter
from dig.runtime.wrap.agent_framework.payloads import is_handoff
from tests.helpers import Recorder

from .agent_framework_asked import SCENARIOS
from .agent_framework_watch import Watched
from .framework_watch import Broken
from .harness import Outcome, play

SCENARIO = {one.name: one for one in SCENARIOS}
FRAGILE = [
    "fan-ask",
    "conditional-stream",
    "several_at_once-ask",
    "asking-answer_back",
    "failing-ask",
]
"""Between them they come through every call of the adapter."""


class Usher:
    """A gate that keeps everything for a moment, and puts a note beside it."""

    name = "usher"

    def hold(self, monitored: Any, event: Any) -> Hold:
        return Hold(10.0)

    async def decide(self, event: Any) -> list[Inject]:
        return [Inject(event.id, "Welcome")]


WAITING = {"session.released", "team.annotate"}
"""What is called only where something was held, or has got a note."""


def seen(outcome: Outcome) -> Any:
    """What a host can see, but for how turns at the same moment follow each other."""
    events = sorted(str(outcome.returned).split(", "))
    return events, outcome.raised, outcome.per_agent(), outcome.elapsed


@cache
def bare(name: str) -> Outcome:
    return play(SCENARIO[name])


OPTIONS: dict[str, Any] = {"handoff": is_handoff, "annotate": lambda data, notes: data}
OWNERS: dict[str, Any] = {"session": Session, "turn": Turn}
GUARD = "session.step"  # the one that contains what the others raise; see tests of the base


PACKAGE = str(Path(str(adapter.__file__)).parent)


def called() -> set[str]:
    """What the adapter calls of a session and a turn, and what a user may hand in."""
    found = {"team.handoff", "team.annotate"}
    for path in Path(PACKAGE).glob("*.py"):
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.Attribute):
                owner = ast.unparse(part.value).rpartition(".")[2].lstrip("_")
                kind = OWNERS.get(owner)
                if kind and callable(getattr(kind, part.attr, None)):
                    found.add(f"{owner}.{part.attr}")
    return found


SITES = sorted(called() - {GUARD})


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert set(SITES) >= {"session.begin", "session.request", "turn.end", "turn.submit"}
    assert len(SITES) >= 12


@pytest.mark.parametrize("site", SITES)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = site.split(".")
    reached, gates = 0, [Usher()] if site in WAITING else []
    setup = Setup(detectors=standard, healers=dict, gates=gates)
    for scenario in [*FRAGILE, "half_join-ask"]:
        for at in (1, 3):
            watched, count = Watched("heal", setup, strict=False), [0]

            def around(whole: Callable[..., Any], count: list[int], at: int) -> Callable[..., Any]:
                def breaks(*args: Any, **kwargs: Any) -> Any:
                    # The adapter's own calls break, not what the base does for itself.
                    origin = sys._getframe(1).f_code.co_filename
                    is_ours = owner == "team" or origin.startswith(PACKAGE)
                    count[0] += is_ours
                    if is_ours and count[0] >= at:
                        raise RuntimeError(f"planted in {site}")
                    return whole(*args, **kwargs)

                return breaks

            with monkeypatch.context() as patch:
                if owner == "team":
                    watched.options[name] = around(OPTIONS[name], count, at)
                else:
                    kind = OWNERS[owner]
                    patch.setattr(kind, name, around(getattr(kind, name), count, at))
                mine = play(SCENARIO[scenario], watched)
                watched.detach()
            alone = bare(scenario)
            is_same = seen(mine) == seen(alone) if gates else mine == alone
            assert is_same, f"{site}, {scenario}, from call {at} on"
            reached += count[0] >= at
    assert reached, f"no scenario comes through {site}"


@pytest.mark.parametrize("part", ["detectors", "healers", "gates", "sink", "on_finding"])
@pytest.mark.parametrize("name", FRAGILE)
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    watched = Watched("heal", strict=False)
    match part:
        case "detectors":
            watched.setup = Setup(detectors=lambda: [Broken(), *standard()])
        case "healers":
            watched.setup = Setup(detectors=standard, healers=lambda: {"ET": Broken()})
        case "gates":
            watched.setup = Setup(gates=[Broken()], healers=standard_healers)
        case "sink":
            watched.more[part] = Recorder(fail_at=7)
        case _:
            watched.more[part] = Broken()
    assert play(SCENARIO[name], watched) == bare(name)
    watched.detach()
