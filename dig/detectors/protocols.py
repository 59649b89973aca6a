"""The base classes of detectors and healers: the interface to the monitor.

A hook that a class does not need has a default here. A method whose name is close to that of a
hook is taken for a slip of the pen and refused when the class is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record

from .finding import Finding
from .interventions import Inject, Intervention
from .ladder import LadderStep, Progress


class Component:
    """The common part of detectors and healers.

    Attributes:
        recorded_as: The name of a class of dig in the first line of a trace. Runs that were
            recorded under a name are replayed by it, so the name stays when the class moves.
    """

    recorded_as: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Refuse a name similar to the name of a hook.

        Raises:
            TypeError: There is one.
        """
        super().__init_subclass__()
        # A misspelt hook would never be called, and nobody would notice.
        bases = [base for base in cls.__mro__ if base.__module__ == __name__]
        hooks = {hook for base in bases for hook in vars(base) if not hook.startswith("_")}
        own = [name for name in vars(cls) if not name.startswith("_") and name not in hooks]
        if not own:
            return
        from difflib import get_close_matches  # only for a class that has public names of its own

        for name in own:
            for hook in get_close_matches(name, hooks, 1, 0.85):
                raise TypeError(
                    f"{cls.__qualname__}.{name} looks like the hook `{hook}`: rename it; "
                    "a name that begins with an underscore is never taken for a hook"
                )

    def forget(self, graph: InteractionGraph) -> None:
        """Forget events and activations unknown to the graph of a long session.

        A component remembers them by id, since their numbers change (see `dig.graph.retention`),
        and asks `graph.knows`.
        """


class Detector(Component, ABC):
    """Looks for a pattern after every record, changes nothing and never waits.

    Attributes:
        pattern: The short name of the pattern, `ET` for instance.
        kinds: The types of records that it is shown; ``None``: all that change the graph. Beside
            types, flags of `dig.graph.records` (`CLOSED` for instance): it is shown all records
            that have made such a change.
        due: The moment, in microseconds since the run began, at which it will have something to
            raise if nothing happens before; ``None``: no such moment. It may change in `detect`,
            `expire`, `on_finding` and `settle_due` only.
    """

    pattern: str = ""
    kinds: tuple[type | int, ...] | None = None
    due: int | None = None

    @abstractmethod
    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Return the findings at a record, after it was applied to the graph.

        Do work in proportion to what the record changed: `graph.touched` and
        `graph.problems.touched` say what that is.
        """

    def expire(self, graph: InteractionGraph, us: int) -> Iterable[Finding]:
        """Return the findings at moment `us`, which is `due`, and set `due` anew."""
        return ()

    def settle_due(self) -> None:
        """Set `due` exactly, if the present moment may be too early.

        It is cheaper to do so when somebody asks for the moment than after every record.
        """

    def on_finding(self, graph: InteractionGraph, finding: Finding) -> None:
        """Take note of a finding of another detector."""

    def awaited(self) -> Iterable[str]:
        """The events for `expire` to raise; a session keeps these events."""
        return ()


class Healer(Component, ABC):
    """Turns a finding into interventions; none, if there is nothing sensible to do.

    Attributes:
        cooldown_s: For how many seconds it is not asked again about the same subject, so that
            what it has said has time to work.
        repeats_problems: Whether the healer may send problems again that were consumed already; the
            monitor then keeps what they carry.
    """

    cooldown_s: float = 0.0
    repeats_problems: ClassVar[bool] = False

    @abstractmethod
    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterable[Intervention]:
        """Return the interventions for a finding, by the present graph."""

    def can_heal(self, finding: Finding) -> bool:
        """Whether the healer can act on a finding; if not, no budget is used."""
        return True

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterable[Intervention]:
        """Return the interventions of a step, with ladders; by default those of `heal`.

        Args:
            graph: The graph as it stands now.
            finding: The finding, as it was raised last.
            step: The step; a further one comes when the finding is raised again, or when
                `progress` has been `none` for a while.
        """
        return self.heal(graph, finding)

    def progress(self, graph: InteractionGraph, finding: Finding, step: LadderStep) -> Progress:
        """Whether the latest step about a finding has helped; by default the detector tells."""
        return "untold"

    def about(self, finding: Finding) -> object:
        """The key for findings of equal subjects, for the budget; by default none."""
        return None

    def missing_work(self, finding: Finding) -> Sequence[str]:
        """The events for notes to quote the words of, cut; by default none.

        A healer is not shown what events carry: the monitor adds the words to its notes.
        """
        return ()

    def prevent(self, graph: InteractionGraph, event: str) -> Iterable[Inject]:
        """Return notes for an event with several recipients, before the delivery.

        There is no finding yet, and there may never be one.
        """
        return ()


def check(component: object, base: type[Component]) -> None:
    """Refuse a detector or healer without the right base class.

    Raises:
        SettingsError: The message says what to do.
    """
    if not isinstance(component, base):
        kind = base.__name__
        raise SettingsError(
            f"{component!r} is no {kind.lower()}: its class must inherit from dig.{kind}"
        )
