"""LangGraph, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")


from dig.detectors import standard, standard_healers
from dig.runtime.host import Setup
from dig.runtime.wrap import Session, Turn
from dig.runtime.wrap import langgraph as adapter
from dig.runtime.wrap.langgraph.notes import as_messages
from dig.runtime.wrap.langgraph.routes import is_handoff
from tests.helpers import Recorder

from .framework_watch import Broken
from .harness import play
from .langgraph_asked import SCENARIOS
from .langgraph_watch import Watched

SCENARIO = {one.name: one for one in SCENARIOS}
FRAGILE = [
    "fan-ask",
    "send-ask",
    "two_teams-ask",
    "failing-ask",
    "retried-ask",
    "asking-answer_back",
]
"""Between them they come through every call of the adapter."""


OWNERS: dict[str, Any] = {"session": Session, "turn": Turn}


def called(package: Path = Path(str(adapter.__file__)).parent) -> set[str]:
    """What the adapter calls of a session, a turn, and what a user may hand in."""
    found = set()
    for path in package.glob("*.py"):
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.Attribute):
                owner = ast.unparse(part.value).rpartition(".")[2].lstrip("_")
                if part.attr in _methods(owner):
                    found.add(f"{owner}.{part.attr}")
    return found


def _methods(owner: str) -> set[str]:
    if owner == "team":
        return {"annotate", "handoff"}
    kind = OWNERS.get(owner)
    return {name for name in dir(kind) if callable(getattr(kind, name))} if kind else set()


GUARDS = {"session.step", "session.released"}
"""Those that contain what others raise; see the tests of the base."""
SITES = sorted(called() - GUARDS)


def breaking(monkeypatch: pytest.MonkeyPatch, watched: Watched, site: str, at: int) -> list[int]:
    """Have a call site raise from its `at`-th call on; returns a list with the number of calls."""
    owner, name = site.split(".")
    count = [0]

    def around(whole: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            if count[0] >= at:
                raise RuntimeError(f"planted in {site}")
            return whole(*args, **kwargs)

        return call

    if owner == "team":
        given: dict[str, Any] = {"annotate": as_messages, "handoff": is_handoff}
        watched.options[name] = around(given[name])
    else:
        kind = OWNERS[owner]
        monkeypatch.setattr(kind, name, around(getattr(kind, name)))
    return count


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert set(SITES) >= {"session.begin", "session.request", "turn.end", "team.annotate"}
    assert len(SITES) >= 15


@pytest.mark.parametrize("site", SITES)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FRAGILE:
        for at in (1, 3):
            watched = Watched("heal", strict=False)
            with monkeypatch.context() as patch:
                breaking(patch, watched, site, at)
                mine = play(SCENARIO[name], watched)
            assert mine == play(SCENARIO[name]), f"{site} raised in {name} from call {at} on"


@pytest.mark.parametrize("part", ["detectors", "healers", "gates", "sink", "on_finding"])
@pytest.mark.parametrize("name", [*FRAGILE, "half_join-ask"])
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    setup = Setup(detectors=standard, healers=standard_healers)
    watched = Watched("heal", setup, strict=False)
    match part:
        case "detectors":
            watched.setup = Setup(detectors=lambda: [Broken(), *standard()])
        case "healers":
            watched.setup = Setup(detectors=standard, healers=lambda: {"ET": Broken()})
        case "gates":
            watched.setup = Setup(gates=[Broken()])
        case "sink":
            watched.more[part] = Recorder(fail_at=7)
        case _:
            watched.more[part] = Broken()
    assert play(SCENARIO[name], watched) == play(SCENARIO[name])
