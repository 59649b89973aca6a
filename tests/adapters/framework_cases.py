"""Cases that together come through every site of an adapter, and a fault at each of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dig.adapters import Mode
from dig.runtime.setup import Setup

from .framework_faults import broken
from .framework_sites import Passes, Site, Sites
from .harness import Outcome, Scenario, play

Wrap = Callable[[Any], Any]

MANY = 5
"""Through how many cases a site is made to fail in each way in each of them."""


@dataclass(frozen=True)
class Case:
    """A scenario and how it is monitored.

    Attributes:
        asked: The scenario; or, if the wrapped team is a part of another one, what makes the
            scenario of what wraps it.
        setup: Makes the session's setup; by default everything is found and healed.
        options: Those of the adapter.
        mode: Whether the session heals.
        lost: What fails besides, as `broken` has it: `session.begin`, and from which call on.
    """

    asked: Scenario | Callable[[Wrap], Scenario]
    setup: Callable[[], Setup | None] = lambda: None
    options: Mapping[str, Any] = field(default_factory=dict)
    mode: Mode = "heal"
    lost: tuple[str, int] | None = None

    def play(self, wrap: Wrap = lambda team: team) -> Outcome:
        """See what a host sees."""
        if isinstance(self.asked, Scenario):
            return play(self.asked, wrap)
        return play(self.asked(wrap))


class Known:
    """What comes of a case while no site is made to fail.

    Attributes:
        bare: What its host sees without a monitor.
        healed: What it sees with one.
        passes: How often each site is passed.
        unread: Calls that are no site, though they come from the adapter.
    """

    def __init__(self, case: Case, outcome: Outcome, passes: Passes) -> None:
        self.bare, self.healed = case.play(), outcome
        self.passes, self.unread = Counter(passes.sites), passes.unread
        setup = case.setup()
        self._has_budget = setup is not None and setup.policy.budget is not None

    def allows(self, seen: Outcome) -> bool:
        """Whether a host with a monitor that fails somewhere may see this.

        It is what it would see without; where healing changes something, the result may be the
        one or the other. A budget counts what the monitor sees, so a fault may move the stop: the
        host then sees another answer, what a budget raises or what the team does, never the fault.
        """
        if self._has_budget:
            kinds = {"BudgetExceeded", *(kind for kind, _ in self.bare.raised[:1])}
            kind, text = seen.raised[0] if seen.raised else ("", "the budget of")
            return kind in kinds or "the budget of" in text.lower()
        if self.healed == self.bare:
            return seen == self.bare
        return any(
            (seen.returned, seen.raised) == (one.returned, one.raised)
            for one in (self.bare, self.healed)
        )


class Cases:
    """The cases of one adapter.

    Args:
        adapter: Its package.
        watched: What wraps its teams, made of a mode and a setup.
        cases: The cases.
        most: How many faults a site is made to have at most; ``None``: as `MANY` has it.
        also: Further names of variables, as `Sites` takes them.

    Attributes:
        sites: Where it calls the monitor.
    """

    def __init__(
        self, adapter: Any, watched: Any, cases: Sequence[Case], most: int | None = None,
        **also: str,
    ) -> None:  # fmt: skip
        self.sites = Sites(adapter, **also)
        self._adapter = adapter
        self._watched = watched
        self._cases = cases
        self._most = most

    @cached_property
    def known(self) -> list[tuple[Case, Known]]:
        """Each case, with what comes of it while no site is made to fail."""
        return [(case, Known(case, *self._play(case))) for case in self._cases]

    def left_out(self) -> list[str]:
        """The sites that no case comes through, and the calls that are no site."""
        passed = {site for _, known in self.known for site in known.passes}
        unread = {call for _, known in self.known for call in known.unread}
        return [*(str(site) for site in self.sites.all if site not in passed), *sorted(unread)]

    def must_stand(self, site: Site) -> None:
        """The hosts see nothing of a fault at a site, at its first pass or its last one."""
        faults = self._faults(site)
        assert faults, f"no case comes through {site}"
        for case, known, at, after in faults:
            seen, passes = self._play(case, site, at, after)
            when = f"{case.asked}, {'after' if after else 'before'} it was done, pass {at}"
            assert passes.planted == 1, f"{site} is not passed in {when}"
            assert known.allows(seen), f"{site} failed in {when}: {seen}"

    def must_stand_for_good(
        self, called: str, asked: Scenario, known: Outcome, watched: Callable[[], Any]
    ) -> None:
        """A host sees nothing of what fails from its first or third call on.

        Args:
            called: What fails, as `Sites.called` has it.
            asked: What the host asks.
            known: What it sees without a monitor.
            watched: Makes what wraps the team.
        """
        for at in (1, 3):
            watching = watched()
            with broken(called, self._adapter, at):
                mine = play(asked, watching)
            watching.detach()
            assert mine == known, f"{called}, {asked}, from call {at} on"

    def _faults(self, site: Site) -> list[tuple[Case, Known, int, bool]]:
        """The faults at a site: case, what is known of it, which pass, and whether after it.

        Where many cases come through, each has one of these, and others have the others.
        """
        through = [(case, known) for case, known in self.known if known.passes[site]]
        first = self.sites.all.index(site)
        if self._most is not None:
            step = -(-len(through) // self._most)
            through = through[first % step :: step] if through else []
        ways = [
            [
                (case, known, at, after)
                for after in (False, True)
                for at in sorted({1, known.passes[site]})
            ]
            for case, known in through
        ]
        rounds = 4 if len(through) <= (MANY if self._most is None else 1) else 1
        return [
            way[(first + number + turn) % len(way)]
            for turn in range(rounds)
            for number, way in enumerate(ways)
            if turn < len(way)
        ]

    def _play(self, case: Case, *fault: Any) -> tuple[Outcome, Passes]:
        watched = self._watched(case.mode, case.setup(), strict=False, **case.options)
        with ExitStack() as stack:
            passes: Passes = stack.enter_context(self.sites.passing(*fault))
            if case.lost is not None:
                name, at = case.lost
                stack.enter_context(broken(name, self._adapter, at))
            outcome = case.play(watched)
            watched.detach()
        return outcome, passes
