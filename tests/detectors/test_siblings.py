"""Siblings: whose work went unlike the others', by types, shapes, recipients, numbers and fates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dig import Output
from dig.detectors.siblings import NO_SHAPE, Shape, find_deviations, shape_of
from tests.helpers import Stage, out

RETURN: Mapping[str, Any] = {"sum": 1, "of": "part"}


class Team:
    """Agent `a` has given a part of the same kind to each of `b`, `c` and `d`."""

    def __init__(self, agents: str = "abcde") -> None:
        self.stage = Stage(agents)
        self.shapes: dict[str, Shape] = {}
        self.stage.give("a")
        self.stage.turn("a", *(out(to, "part", type="problem") for to in "bcd"))

    def turn(self, agent: str, *outputs: Output, fate: Any = "consume") -> None:
        before = self.stage.graph.event_count
        self.stage.turn(agent, *outputs, fate=fate)
        names = list(self.stage.graph.history.event_ids)[before:]
        for name, output in zip(names, outputs, strict=False):
            self.shapes[name] = shape_of(output.payload)

    def back(self, agent: str, payload: Any = RETURN, to: str = "a", **more: Any) -> None:
        self.turn(agent, out(to, payload, **{"type": "solution", **more}))

    def found(self) -> list[tuple[str, str]]:
        """Each agent against which there is a sign, with the mechanism."""
        graph = self.stage.graph
        signs = find_deviations(graph, lambda event: self.shapes.get(event, NO_SHAPE))
        return sorted({(sign.agent, sign.mechanism) for sign in signs})


def test_agents_that_do_alike_have_no_sign() -> None:
    team = Team()
    for agent in "bcd":
        team.back(agent)
    assert team.found() == []


@pytest.mark.parametrize(
    ("odd", "mechanism"),
    [
        ({"type": "question"}, "unlike"),
        ({"payload": "sum: 1"}, "unlike"),
        ({"payload": {"sum": 1}}, "unlike"),
        ({"payload": None}, "unlike"),
        ({"to": "e"}, "unlike"),
        ({"to": "d"}, "unlike"),
        ({"payload": {"sum": 1, "of": "part", "sure": True}}, None),
        ({"payload": {"$cut": 10}}, None),
    ],
)
def test_a_return_of_another_type_shape_or_way_is_a_sign(
    odd: dict[str, Any], mechanism: str | None
) -> None:
    """More than the others have is none, nor is a payload that was cut."""
    team = Team()
    team.back("b")
    team.back("c")
    team.back("d", **odd)
    assert team.found() == ([("d", mechanism)] if mechanism else [])


def test_two_agents_do_not_say_who_of_them_is_odd() -> None:
    team = Team()
    team.back("b")
    team.back("c", type="question")
    assert team.found() == []


def test_what_an_agent_says_to_itself_is_followed_until_it_goes_back() -> None:
    """The second step is odd; the first one is as that of the others."""
    team = Team()
    for agent in "bcd":
        team.turn(agent, out(agent, "data", type="data"))
    team.back("b")
    team.back("c")
    team.turn("d")
    assert ("d", "nothing") in team.found()


@pytest.mark.parametrize(("fate", "mechanism"), [("delay", "kept"), ("discard", "discarded")])
def test_work_that_others_have_done_and_an_agent_keeps_or_throws_away(
    fate: str, mechanism: str
) -> None:
    team = Team()
    team.back("b")
    team.back("c")
    team.turn("d", fate=fate)
    assert team.found() == [("d", mechanism)]


def test_who_waits_for_the_others_has_no_sign() -> None:
    """The giver keeps what came back, since a part of it is missing."""
    team = Team()
    team.back("b")
    team.back("c")
    team.turn("a", fate="delay")
    assert team.found() == []


def test_a_giver_that_makes_nothing_of_what_came_back() -> None:
    team = Team()
    for agent in "bcd":
        team.back(agent)
    team.turn("a")
    assert team.found() == [("a", "swallowed")]


def test_whose_return_alone_is_thrown_away_and_who_throws_away_all() -> None:
    thrown, team = Team(), Team()
    for one in (thrown, team):
        for agent in "bcd":
            one.back(agent)
            alone = agent == "b" and one is team
            kept = [] if one is thrown or alone else [out("a", "sum", type="solution")]
            one.turn("a", *kept, fate="consume" if kept else "discard")
    assert team.found() == [("b", "unread")]
    assert thrown.found() == [("a", "discarded")]


def test_a_part_that_another_agent_has_done_well_is_no_sign_any_more() -> None:
    team = Team()
    team.back("b")
    team.back("c")
    team.turn("d", out("a", "?", type="question"))
    assert team.found() == [("d", "unlike")]
    part = list(team.stage.graph.history.event_ids)[3]
    monitor = team.stage.monitor
    monitor._holds.payloads.restore(part, "part")
    monitor._holds.redirect(part, ("e",))
    monitor.tick()
    team.back("e")
    assert team.found() == []


def test_half_as_much_of_each_input_as_the_others_make() -> None:
    team = Team()
    for agent in "bcd":
        count = 1 if agent == "d" else 2
        team.turn(agent, *(out("a", RETURN, type="solution") for _ in range(count)))
    assert team.found() == [("d", "unlike")]
