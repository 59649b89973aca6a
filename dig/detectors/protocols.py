"""The base classes of detectors and healers: all that the monitor knows of detection and healing.

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
        """Refuse a name that looks like that of a hook.

        Raises:
            TypeError: There is one.
        """
        super().__init_subclass__()
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
        """Forget events and activations that the graph of a long session knows no more.

        A component remembers them by id, since their numbers change (see `dig.graph.retention`),
        and asks `graph.knows`.
        """


class Detector(Component, ABC):
    """Looks for one pattern after every record. It changes nothing and never waits.

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
        """The findings that the record raises which was just applied to the graph.

        Do work in proportion to what the record changed: `graph.touched` and
        `graph.problems.touched` say what that is.
        """

    def expire(self, graph: InteractionGraph, us: int) -> Iterable[Finding]:
        """The findings at moment `us`, which is `due` and has come; `due` is set anew."""
        return ()

    def settle_due(self) -> None:
        """Set `due` exactly, if it is a moment before that at which something is raised.

        It is cheaper to do so when somebody asks for the moment than after every record.
        """

    def on_finding(self, graph: InteractionGraph, finding: Finding) -> None:
        """Take note of a finding that another detector has raised."""

    def awaited(self) -> Iterable[str]:
        """The events of which `expire` will raise something; a session keeps them until then."""
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
        """The interventions for a finding, with the graph as it stands now."""

    def can_heal(self, finding: Finding) -> bool:
        """Whether it has anything to do about a finding; one without costs no budget."""
        return True

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterable[Intervention]:
        """The interventions with ladders, step by step; by default those of `heal`.

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
        """The key that tells findings of equal subjects apart for the budget; by default none."""
        return None

    def missing_work(self, finding: Finding) -> Sequence[str]:
        """The events whose words the notes about a finding quote, cut; by default none.

        A healer is not shown what events carry: the monitor adds the words to its notes.
        """
        return ()

    def prevent(self, graph: InteractionGraph, event: str) -> Iterable[Inject]:
        """Notes for an event that is about to be delivered to several agents.

        There is no finding yet, and there may never be one.
        """
        return ()


def check(component: object, base: type[Component]) -> None:
    """Refuse a detector or healer whose class does not inherit from its base class.

    Raises:
        SettingsError: The message says what to do.
    """
    if not isinstance(component, base):
        kind = base.__name__
        raise SettingsError(
            f"{component!r} is no {kind.lower()}: its class must inherit from dig.{kind}"
        )
