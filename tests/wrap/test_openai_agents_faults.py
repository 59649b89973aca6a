"""OpenAI agents, wrapped: whatever fails in the monitor, the host does not see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("agents.testing", reason="not installed: pip install .[dev,openai-agents]")


from dig.detectors import standard
from dig.runtime.host import Setup
from dig.runtime.wrap import openai_agents as adapter
from dig.runtime.wrap.openai_agents.taps import as_message

from .framework_faults import PARTS, break_part, broken, call_sites
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

SITES = call_sites(adapter)


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
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(site: str) -> None:
    for asked in ASKED:
        for at in (1, 3):
            watched = Watched("heal", Setup(detectors=standard), strict=False)
            with broken(site, adapter, at):
                mine = play(asked, watched)
            assert mine == play(asked), f"{site} raised in {asked} from call {at} on"


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("build", [two_at_once, ping_pong])
def test_a_fault_while_it_heals_leaves_the_host_a_result_or_its_own_exception(
    build: Any, site: str
) -> None:
    for at in (1, 2, 3, 5):
        watched = Watched("heal", strict=False)
        with broken(site, adapter, at):
            mine = play(scenario(build), watched)
        assert mine.returned or mine.raised[0][0] == "MaxTurnsExceeded"


@pytest.mark.parametrize("drive", [ask, stream])
def test_an_annotate_that_raises_changes_nothing_for_the_host(drive: Any) -> None:
    asked = scenario(ping_pong, drive)
    watched = Watched("heal", strict=False, annotate=raising(as_message, "annotate", 1))
    assert play(asked, watched) == play(asked)
    assert watched.session.statistics().faults > 0


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("asked", [*ASKED, scenario(two_at_once), scenario(ping_pong)], ids=str)
def test_broken_parts_change_nothing_for_the_host(part: str, asked: Any) -> None:
    watched = Watched("heal", strict=False)
    break_part(watched, part)
    assert play(asked, watched) == play(asked)
