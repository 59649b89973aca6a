"""OpenAI agents, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.testing", reason="not installed: pip install .[dev,openai-agents]")


from dig.detectors import standard, standard_healers
from dig.runtime.host import Setup
from dig.runtime.wrap import Session, Turn
from dig.runtime.wrap import openai_agents as adapter
from dig.runtime.wrap.openai_agents.taps import as_message
from tests.helpers import Recorder

from .framework_watch import Broken
from .harness import play
from .openai_agents_asked import SCENARIOS
from .openai_agents_teams import Watched, ask, scenario, stream
from .test_openai_agents_healing import ping_pong, two_at_once

FRAGILE = [
    "chain-ask",
    "chain-stream",
    "tool_and_handoff-ask",
    "raising-ask",
    "in_code-stream",
    "guarded-ask",
    "approved-approve",
    "alone-talk",
]
ASKED = [one for one in SCENARIOS if one.name in FRAGILE]
"""Between them they come through every call of the adapter, but those of a bounce and a note."""

OWNERS: dict[str, Any] = {"session": Session, "turn": Turn}
CLOSED = {"session.step", "session.released"}
"""Those that contain what others raise; see the tests of the base."""


def called(package: Path = Path(str(adapter.__file__)).parent) -> set[str]:
    """What the adapter calls of a session and a turn."""
    found = set()
    for path in package.glob("*.py"):
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.Attribute):
                owner = ast.unparse(part.value).rpartition(".")[2].lstrip("_")
                kind = OWNERS.get(owner)
                if kind is not None and callable(getattr(kind, part.attr, None)):
                    found.add(f"{owner}.{part.attr}")
    return found - CLOSED


SITES = sorted(called())


def breaking(patch: pytest.MonkeyPatch, site: str, at: int) -> None:
    """Have a call site raise from its `at`-th call on."""
    owner, name = site.split(".")
    patch.setattr(OWNERS[owner], name, raising(getattr(OWNERS[owner], name), site, at))


def raising(whole: Callable[..., Any], site: str, at: int) -> Callable[..., Any]:
    count = [0]

    def call(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        if count[0] >= at:
            raise RuntimeError(f"planted in {site}")
        return whole(*args, **kwargs)

    return call


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert set(SITES) >= {"session.begin", "session.request", "turn.end"}
    assert len(SITES) >= 15


@pytest.mark.parametrize("site", SITES)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked in ASKED:
        for at in (1, 3):
            watched = Watched("heal", Setup(detectors=standard), strict=False)
            with monkeypatch.context() as patch:
                breaking(patch, site, at)
                mine = play(asked, watched)
            assert mine == play(asked), f"{site} raised in {asked} from call {at} on"


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("build", [two_at_once, ping_pong])
def test_a_fault_while_it_heals_leaves_the_host_a_result_or_its_own_exception(
    build: Any, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in (1, 2, 3, 5):
        watched = Watched("heal", strict=False)
        with monkeypatch.context() as patch:
            breaking(patch, site, at)
            mine = play(scenario(build), watched)
        assert mine.returned or mine.raised[0][0] == "MaxTurnsExceeded"


@pytest.mark.parametrize("drive", [ask, stream])
def test_an_annotate_that_raises_changes_nothing_for_the_host(drive: Any) -> None:
    asked = scenario(ping_pong, drive)
    watched = Watched("heal", strict=False, annotate=raising(as_message, "annotate", 1))
    assert play(asked, watched) == play(asked)
    assert watched.session.statistics().faults > 0


@pytest.mark.parametrize("part", ["detectors", "healers", "gates", "sink", "on_finding"])
@pytest.mark.parametrize("asked", [*ASKED, scenario(two_at_once), scenario(ping_pong)], ids=str)
def test_broken_parts_change_nothing_for_the_host(part: str, asked: Any) -> None:
    watched = Watched("heal", Setup(detectors=standard), strict=False)
    match part:
        case "detectors":
            watched.setup = Setup(detectors=lambda: [Broken(), *standard()])
        case "healers":
            watched.setup = Setup(
                detectors=standard, healers=lambda: dict.fromkeys(standard_healers(), Broken())
            )
        case "gates":
            watched.setup = Setup(gates=[Broken()])
        case "sink":
            watched.more[part] = Recorder(fail_at=7)
        case _:
            watched.more[part] = Broken()
    assert play(asked, watched) == play(asked)
