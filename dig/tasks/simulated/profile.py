"""The habits of a simulated agent, good and bad, by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from dig.errors import SettingsError
from dig.tasks.user_objects import numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The habits of simulated agents; all agents of a team have the same profile.

    The defaults make a team of six that counts 10,000 elements stumble now and then, as teams of
    language models do; `Profile.perfect()` never stumbles. Probabilities are from 0 to 1 and,
    unless it says otherwise, of one activation in which the habit could show. A note that an agent
    heeds (`compliance`) keeps it from the mistake that the note warns of, and from no other.

    Attributes:
        think_s: Median seconds from the start of an activation to its end, without reading.
        think_spread: Standard deviation of the logarithm of `think_s`.
        read_s: Seconds more for each element of raw data that is counted.
        chunk_length: The number of elements that the agent likes to count in one go; it cuts up
            longer parts, and reads shorter ones. A message may carry fewer, which it then goes by.
        pieces_per_agent: A part is cut into so many pieces for each member of the team, at most.
        reads_at_once: The number of parts that the agent reads in one activation, at most.
        error: Probability that an element is miscounted in a chunk of 1,000 elements; half of
            the miscounted ones are skipped, half are taken for a random value of the chunk.
        error_growth: By which power of the chunk's length that probability grows.
        most_error: The bound that this probability never exceeds.
        read_post_s: Seconds more for each post that is read.
        posts_at_once: The number of posts that the agent likes to read in one go, as
            `chunk_length`.
        confusion: Probability that a post's topic is lost in a chunk of 40 posts; half of these
            posts are skipped, half are taken for the topic that is most frequent in the chunk.
        confusion_growth: By which power of the number of posts read at once it grows.
        most_confusion: The bound that this probability never exceeds.
        wait: Probability to wait although there is something to do.
        pass_on: Probability to reroute work to a random colleague: each problem, each raw data,
            and one of the solutions.
        unwanted: Probability that a subproblem is one that every agent likes to pass on.
        shirk: Probability to reroute such a subproblem to a random colleague.
        discard: Probability to discard work although it is needed; the same events.
        discard_double: Probability, for each solution that covers nothing new, to discard it
            instead of reading it along with the others.
        broadcast: Probability, for each chunk that it has counted, to send the solution to
            all agents, itself included, and not only to the agent that puts the counts together.
        chat: Probability, when it has counted something, to tell a random colleague so, by a
            `notice`: it is no work to anybody, and nothing depends on it.
        duplicate: Probability, for each subproblem that it hands out, to keep it as well.
        misaddress: Probability, for each event that it generates, to send it to a name that no
            agent has.
        merge: Probability to merge the solutions that have come so far into one.
        hand_over: Probability to merge them and have a random colleague go on collecting, while
            all others still report to this agent.
        count_twice: Probability to add up two solutions of the same part, the same in all
            activations of an agent.
        mix: Probability, likewise, to add up solutions that do not belong together: of
            overlapping parts, from two ways to cut a problem, or of another problem.
        submit_early: Probability to take for the whole what is only a part of it, and to submit
            that; the same in all activations of an agent. It shows only if something is missing
            that the agent does not have in front of itself.
        enough: The least share of the whole that such an agent submits; what is enough for it is
            drawn between that share and the whole.
        announce: Probability to tell all agents the whole result, and not to submit it.
        fail: Probability to answer nonsense, so that the activation fails.
        compliance: Probability to heed a note, drawn once for an agent and a note. A note that
            says nothing (a bare wake-up) cannot be heeded. By its pattern, an agent then waits for
            the work that ET names as open, and has the rest counted again; keeps and does what OE
            names as lost; does not wait if DL names work in front of it, and sees to what is
            missing; submits what there is (MC); counts once (RSP); keeps apart (CLA); does not
            pass on (ER).
        look_again_s: Seconds after which the host starts an agent again that only waited;
            0: it is started by new events alone, as in the paper.
    """

    think_s: float = 2.4
    think_spread: float = 0.25
    read_s: float = 0.0005
    chunk_length: int = 1000
    pieces_per_agent: int = 10
    reads_at_once: int = 4
    error: float = 0.65
    error_growth: float = 0.0
    most_error: float = 0.65
    read_post_s: float = 0.02
    posts_at_once: int = 40
    confusion: float = 0.97
    confusion_growth: float = 5.0
    most_confusion: float = 0.52
    wait: float = 0.012
    pass_on: float = 0.02
    unwanted: float = 0.003
    shirk: float = 0.8
    discard: float = 0.002
    discard_double: float = 0.2
    broadcast: float = 0.05
    chat: float = 0.8
    duplicate: float = 0.03
    misaddress: float = 0.004
    merge: float = 0.1
    hand_over: float = 0.02
    count_twice: float = 0.3
    mix: float = 0.3
    submit_early: float = 0.95
    enough: float = 0.3
    announce: float = 0.02
    fail: float = 0.01
    compliance: float = 0.9
    look_again_s: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges of all values.

        Raises:
            SettingsError: A value is out of its range; the message names it.
        """
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            least = 1 if field.type == "int" else 0
            most = 1 if name in _PROBABILITIES else float("inf")
            if not least <= value <= most:
                raise SettingsError(f"{name} must be from {least} to {most}, got {value!r}")

    @classmethod
    def of(cls, texts: Iterable[str]) -> Profile:
        """The default habits but for some, as `NAME=VALUE`s.

        Raises:
            SettingsError: There is no such habit, or a value is wrong; the message names it.
        """
        return cls(**numbers(cls, texts, "--habit"))

    @classmethod
    def perfect(cls) -> Profile:
        """Counts without mistakes, has no bad habits, and heeds every note."""
        never: dict[str, Any] = dict.fromkeys(_PROBABILITIES, 0.0)
        return cls(**{**never, "compliance": 1.0})

    def error_for(self, length: int) -> float:
        """The probability of a miscounted element in a chunk of a length."""
        longer: float = (length / 1000) ** self.error_growth
        return min(self.most_error, self.error * longer)

    def confusion_for(self, posts: int) -> float:
        """The probability of a lost topic in a chunk of some posts."""
        longer: float = (posts / 40) ** self.confusion_growth
        return min(self.most_confusion, self.confusion * longer)


_PROBABILITIES = (
    "error", "most_error", "confusion", "most_confusion", "wait", "pass_on", "discard",
    "unwanted", "shirk", "discard_double", "broadcast", "chat", "duplicate", "misaddress", "merge",
    "hand_over", "count_twice", "mix", "submit_early", "enough", "announce", "fail", "compliance",
)  # fmt: skip
