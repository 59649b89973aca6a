"""AG2 classic, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")


from dig.detectors import standard, standard_healers
from dig.runtime.host import Setup
from dig.runtime.wrap import Session, Turn
from dig.runtime.wrap import ag2_classic as adapter
from tests.helpers import Recorder

from .ag2_classic_asked import SCENARIOS, in_group
from .ag2_classic_teams import Watched, Wrapping, scenario
from .framework_watch import Broken
from .harness import Scenario, play
from .test_ag2_classic_healing import in_background, ping_pong, twice, two_at_once

FRAGILE = ["chat-ask", "chat-ask_now", "group-ask", "nested-ask", "failing-ask", "desks-in_group"]
ASKED = [one for one in SCENARIOS if one.name in FRAGILE]
"""Between them they come through every call of the adapter, but those of a bounce and a note."""

HEALED = [scenario(ping_pong, in_group), scenario(two_at_once, in_group), scenario(twice)]

OWNERS: dict[str, Any] = {"session": Session, "turn": Turn, "caller": Turn}
CLOSED = {"session.step"}  # contains what the others raise; see the tests of the base
PACKAGE = str(Path(str(adapter.__file__)).parent)


def called() -> set[str]:
    """What the adapter calls of a session and a turn."""
    found = set()
    for path in Path(PACKAGE).glob("*.py"):
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.Attribute):
                owner = ast.unparse(part.value).rpartition(".")[2].lstrip("_")
                kind = OWNERS.get(owner)
                if kind is not None and callable(getattr(kind, part.attr, None)):
                    found.add(f"{owner}.{part.attr}")
    return found - CLOSED


SITES = sorted(called())


def breaking(patch: pytest.MonkeyPatch, site: str, at: int) -> None:
    """Have a call site raise from its `at`-th call on; not where the base calls the same."""
    owner, name = site.split(".")
    whole, count = getattr(OWNERS[owner], name), [0]

    def breaks(*args: Any, **kwargs: Any) -> Any:
        is_ours = sys._getframe(1).f_code.co_filename.startswith(PACKAGE)
        count[0] += is_ours
        if is_ours and count[0] >= at:
            raise RuntimeError(f"planted in {site}")
        return whole(*args, **kwargs)

    patch.setattr(OWNERS[owner], name, breaks)


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert set(SITES) >= {"session.begin", "session.request", "session.released", "turn.end"}
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
                mine = play(asked, Wrapping(watched))
            watched.detach()
            assert mine == play(asked), f"{site} raised in {asked} from call {at} on"


@pytest.mark.parametrize("site", SITES)
def test_a_fault_while_it_heals_leaves_the_host_a_result(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked in [*HEALED, scenario(in_background)]:
        for at in (1, 2, 4):
            watched = Watched("heal", strict=False)
            with monkeypatch.context() as patch:
                breaking(patch, site, at)
                mine = play(asked, Wrapping(watched))
            watched.detach()
            assert mine.returned, f"{site} raised in {asked} from call {at} on: {mine.raised}"


@pytest.mark.parametrize("part", ["detectors", "healers", "gates", "sink", "on_finding", "handoff"])
@pytest.mark.parametrize("asked", [*ASKED, *HEALED], ids=str)
def test_broken_parts_change_nothing_for_the_host(part: str, asked: Scenario) -> None:
    watched = Watched("heal", Setup(detectors=standard), strict=False)
    match part:
        case "detectors":
            watched.setup = Setup(detectors=lambda: [Broken(), *standard()])
        case "healers":
            healers = dict.fromkeys(standard_healers(), Broken())
            watched.setup = Setup(detectors=standard, healers=lambda: healers)
        case "gates":
            watched.setup = Setup(gates=[Broken()])
        case "handoff":
            watched.options[part] = Broken()
        case _:
            watched.more[part] = Recorder(fail_at=7) if part == "sink" else Broken()
    assert play(asked, Wrapping(watched)) == play(asked)
    watched.detach()
