"""What a team of plain callables may look like, and what is said about what is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

import dig
from dig import Limits
from dig.adapters.frameworks import adapter_of
from dig.errors import SettingsError


async def ann(question: str) -> str:
    return question


class Worker:
    """Methods of all kinds."""

    async def ask(self, question: str) -> str:
        return str(await self.answer(question))

    @staticmethod
    async def answer(question: str) -> str:
        return question + "!"

    @classmethod
    async def shout(cls, question: str) -> str:
        return question.upper()

    @property
    def broken(self) -> str:
        raise RuntimeError("nobody asked for this")


class Manager(Worker):
    async def ask(self, question: str) -> str:
        return "I say: " + await super().ask(question)


class Called:
    name = "called"

    async def __call__(self, question: str) -> str:
        return question


class Fixed(dict[str, Any]):
    """A dict that can be read only, but for its first entry."""

    def __setitem__(self, key: str, value: Any) -> None:
        if key != "ann":
            raise TypeError("read only")
        super().__setitem__(key, value)


def agents_of(team: Any) -> list[str]:
    wrapped = dig.wrap(team)
    try:
        return list(dig.session_of(wrapped).monitor.graph.agents)
    finally:
        dig.unwrap(wrapped)


def teams() -> Iterator[tuple[Any, list[str]]]:
    yield Worker(), ["answer", "ask", "shout"]
    yield Manager(), ["answer", "ask", "shout"]
    yield [partial(partial(ann)), Called()], ["ann", "called"]
    yield {"one": partial(Called(), "?"), "two": Worker().ask}, ["one", "two"]
    yield {"boss": Worker(), "ann": ann}, ["boss", "ann"]
    yield (ann, Called()), ["ann", "called"]


@pytest.mark.parametrize(("team", "agents"), list(teams()))
def test_whatever_can_be_called_can_be_an_agent(team: Any, agents: list[str]) -> None:
    """Functions, partials, methods of all kinds, inherited ones, objects that can be called."""
    assert agents_of(team) == agents


def test_methods_of_all_kinds_do_what_they_did() -> None:
    """`self`, `cls` and `super()` are what they were, and nothing stays on the object."""

    async def ask() -> list[str]:
        return [await boss.ask("a"), await boss.shout("a"), await boss.answer("a")]

    boss = Manager()
    bare = anyio.run(ask)
    dig.wrap(boss)
    assert anyio.run(ask) == bare == ["I say: a!", "A", "a!"]
    assert dig.session_of(boss).statistics().turns == 4
    dig.unwrap(boss)
    assert vars(boss) == {}


def test_what_the_user_has_changed_meanwhile_stays_changed() -> None:
    """Agents that came, went, moved or were replaced while the team was wrapped."""

    async def bob(question: str) -> str:
        return question

    async def cyd(question: str) -> str:
        return question

    team: dict[str, Any] = {"ann": ann, "bob": bob, "gone": cyd, "moves": cyd}
    dig.wrap(team)
    team["ann"] = team["new"] = cyd
    team["moved"] = team.pop("moves")
    del team["gone"]
    dig.unwrap(team)
    assert team == {"ann": cyd, "bob": bob, "new": cyd, "moved": cyd}

    agents = [ann, bob, cyd]
    dig.wrap(agents)
    agents.pop(0)
    dig.unwrap(agents)
    assert agents == [bob, cyd]

    boss: Any = Worker()
    dig.wrap(boss)
    boss.shout = bob
    dig.unwrap(boss)
    assert vars(boss) == {"shout": bob}


@pytest.mark.parametrize(
    ("team", "options", "words"),
    [
        ({}, {}, "is no team"),
        ("ann", {}, "is no team"),
        ((), {}, "is no team"),
        ({"ann": "ann", "limit": 3}, {}, "is no team"),
        (Path("ann"), {}, "is no team"),
        (Worker, {}, "Worker is a class; wrap an object of it"),
        ({"boss": Worker}, {}, "is no team"),
        ({1: ann, "1": ann}, {}, "two agents are called 1"),
        ([ann, ann], {}, "two agents are called ann"),
        (Fixed(ann=ann, bob=ann), {}, "agent 'bob' cannot be replaced: TypeError"),
        ({"ann": ann}, {"fly": 1}, "no option 'fly' .* it has: allow, annotate, deliver"),
        ({"ann": ann}, {"allow": {"hold"}}, "allow can name bounce, reroute"),
        ({"ann": ann}, {"annotate": 1}, "annotate=1 is no function"),
        ({"ann": ann}, {"deliver": 1}, "deliver=1 is no function"),
        ({"ann": ann}, {"allow": {"fly"}}, "allow names fly; there is: annotate"),
        ({"ann": ann}, {"allow": "bounce"}, "allow='bounce' is no set of names"),
        ({"ann": ann}, {"allow": 3}, "allow=3 is no set of names"),
        ({"ann": ann}, {"require": "bounce"}, "require='bounce' is no set of names"),
        ({"system": ann}, {}, "callables cannot be monitored: `system` can be nobody's id"),
        ({"ann": ann}, {"limits": 3}, "limits=3 is no Limits"),
        ({"ann": ann}, {"setup": 3}, "setup=3 is no Setup"),
        ({"ann": ann}, {"adapter": 3}, "adapter=3 is no Adapter"),
        ({"ann": ann}, {"sink": 3}, "sink=3 is no function"),
        ({"ann": ann}, {"on_finding": 3}, "on_finding=3 is no function"),
        ({"ann": ann}, {"same_work": ["ann"]}, r"same_work=\['ann'\] is no bool"),
        ({"ann": ann}, {"tools": True}, "no option 'tools' for this team"),
        ({"ann": ann}, {"mode": "fix"}, "no mode 'fix'; choose observe or heal"),
    ],
)
def test_what_cannot_be_wrapped_is_refused_in_a_sentence(
    team: Any, options: dict[str, Any], words: str
) -> None:
    """It is said what is wrong, and the team is as it was."""
    before = dict(team) if isinstance(team, dict) else team
    with pytest.raises(SettingsError, match=words):
        dig.wrap(team, **options)
    assert team == before


def test_a_package_of_ones_own_is_not_taken_for_a_framework(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many a program has a module `agents.agent`, whatever else is installed."""
    monkeypatch.setitem(sys.modules, "agents", ModuleType("agents"))
    own = type("Boss", (Worker,), {"__module__": "agents.agent"})()
    assert adapter_of(own).__name__ == "dig.adapters.plain.adapter"  # type: ignore[attr-defined]
    dig.unwrap(dig.wrap(own, limits=Limits()))


@pytest.mark.parametrize("module", ["dspy.predict", "haystack.agents"])
def test_a_team_of_a_framework_without_a_wrapper_is_refused(module: str) -> None:
    """As a plain object it would show nothing of its agents; the error names both ways to go on."""
    team = type("Crew", (), {"__module__": module, "kickoff": lambda self: "done"})()
    with pytest.raises(SettingsError, match=r"has no wrapper.*dig\.wrap\(\{.*adapter=") as refused:
        dig.wrap(team)
    assert module.rpartition(".")[0] in str(refused.value)


def test_a_team_of_ag2_before_1_0_is_sent_to_ag2_1_x() -> None:
    """AG2 classic, `import autogen`, has no wrapper; the error names the version that has one."""
    team = type("GroupChatManager", (), {"__module__": "autogen.agentchat.groupchat"})()
    with pytest.raises(SettingsError, match=r"a team of autogen \(.*move to AG2 1\.x.*adapter="):
        dig.wrap(team)
