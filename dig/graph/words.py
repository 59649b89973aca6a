"""Records and decisions in words: one table for healing, one for fates, one for activations.

A trace may hold anything where a user's detectors and healers wrote, so no function here relies on
the shape of a record: an unknown part is shown as it is, on one line and cut. Findings are put into
words by `dig.detectors.describe`, which knows the patterns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from dig._util.text import counted, cut, join_clauses, name, names, one_line, value_text

from .records import FAILED, HealRow, IncidentRow

MOST_REASON = 120
MOST_NAMED = 3

NOTHING_TO_DO = "there is nothing that this step could do"
"""The reason of a step that only stands in the trace so that a replay takes it, too."""

PAST = {
    "consume": "consumed", "delay": "delayed", "reroute": "rerouted", "discard": "discarded",
    None: "looks at",
}  # fmt: skip
"""The verb for each fate; `None`: the activation has not ended."""

RESPONDS, SUBMITS, WAITS, REROUTES, DISCARDS, FAILS, IDLES, WORKS = (
    "responds", "submits", "waits", "reroutes", "discards", "fails", "does nothing", "in progress",
)  # fmt: skip
"""The deeds of an activation; `WORKS`: it has not ended."""


def seconds(us: int) -> str:
    """A time on the run's clock."""
    return f"{us / 1_000_000:.1f} s"


def moment(us: int) -> str:
    """A time on the run's clock; a short one in milliseconds, a long one in minutes."""
    if us >= 600_000_000:
        return f"{us // 60_000_000:,} min {us // 1_000_000 % 60} s"
    return seconds(us) if us >= 100_000 or us == 0 else f"{us / 1000:.0f} ms"


# --- decisions ---


def deed(fates: Collection[str], outputs: int, *, final: bool = False, failed: bool = False) -> str:
    """The deed of an ended activation; of several the most productive.

    Args:
        fates: The fates of its inputs.
        outputs: The number of events that the activation generated.
        final: Whether the activation's output is an answer.
        failed: Whether the activation ended with an error.
    """
    if failed:
        return FAILS
    if final:
        return SUBMITS
    if outputs or "consume" in fates:
        return RESPONDS
    if "reroute" in fates:
        return REROUTES
    if "discard" in fates:
        return DISCARDS
    return WAITS if fates else IDLES


_PLAIN_FATES = {
    "consume": ("uses", "used"), "reroute": ("passes on", "passed on"),
    "discard": ("throws away", "threw away"),
}  # fmt: skip


def decision_text(fates: Iterable[Mapping[str, Any]], outputs: Iterable[Any], *, past: bool) -> str:
    """A decision in words, such as `uses e4, e5 and sends 2 events`.

    Args:
        fates: The fates of the inputs, each with the keys `event` and `fate`.
        outputs: The events that were generated, as objects or as rows.
        past: Whether to use the past tense.
    """
    finals = [
        output.get("final") if isinstance(output, Mapping) else output.final for output in outputs
    ]
    parts: list[str] = []
    for fate, verbs in _PLAIN_FATES.items():
        events = [row["event"] for row in fates if row["fate"] == fate]
        if events:
            parts.append(f"{verbs[past]} {names(events, 3)}")
    if any(finals):
        parts.append(("submits an answer", "submitted an answer")[past])
    elif finals:
        parts.append(f"{('sends', 'sent')[past]} {counted(len(finals), 'event')}")
    return " and ".join(parts) or ("only waits", "only waited")[past]


# --- healing ---

REMARK = "remark"
CONTENTS = ("asks", "answer", "text")
"""The words of an incident: a question, how to answer it, and lines of code."""
"""The kind of an intervention that adds a note to an answer."""

_HEALING = {
    "create": (
        "sent a note to {who}", "sent note {event} to {to}", "sent {number} notes to {who}",
    ),
    "answer": (
        "held the answer of {who}", "sent {event} to {to} instead{note}",
        "held {number} answers of {who}",
    ),
    "reroute": (
        "redirected a message to {who}", "sent {event} to {to} instead{note}",
        "redirected {number} messages to {who}",
    ),
    "redeliver": (
        "sent a message to {who} once more", "sent {event} to {to} once more{note}",
        "sent {number} messages to {who} once more",
    ),
    "reassign": (
        "gave a message of another agent to {who} as well", "gave {event} to {to} as well{note}",
        "gave {number} messages of other agents to {who} as well",
    ),
    "restart": (
        "gave the whole problem to {who} again", "gave {event} to {to}, from the beginning{note}",
        "gave the whole problem {number} times to {who} again",
    ),
    "replace": (
        "took {who} out of the team", "took {to} out of the team: {reason}",
        "took {number} agents out of the team: {who}",
    ),
    "inject": (
        "added a note to a message{for_who}", "put a note beside {event}{for_to}",
        "added {number} notes to messages{for_who}",
    ),
    REMARK: (
        "put a note beside the answer", "put a note beside {event}{for_to}",
        "put {number} notes beside answers",
    ),
    "refused": ("did nothing: {cut_reason}", "did nothing: {reason}", ""),
    "other": (
        "did something else: {action}", "{action} {event}",
        "acted {number} times in another way",
    ),
}  # fmt: skip
"""Kind of an intervention -> its words for a reader who knows no graph, its words with ids, and the
plain words for several."""

_NOBODY = {"answer": "its author", "replace": "an agent"}


def healing_kind(row: HealRow) -> str:
    """The kind of an intervention: the action, or `answer` for a returned answer."""
    if row.action == "reroute":
        pattern = row.about.get("pattern") if isinstance(row.about, Mapping) else None
        return "answer" if pattern == "ET" else "reroute"
    return row.action if str(row.action) in _HEALING else "other"


def healing_text(row: HealRow) -> str:
    """An intervention in words, with ids."""
    to = names(row.to or ())
    return _HEALING[healing_kind(row)][1].format(
        action=name(row.action), event=name(row.event), to=to or "nobody",
        for_to=f", for {to}" if to else "", note=", with a note" if row.note else "",
        reason=one_line(row.reason),
    )  # fmt: skip


def action_text(row: HealRow, present: int = 0, kind: str = "") -> str:
    """An intervention for a reader without knowledge of the graph.

    Args:
        row: The intervention.
        kind: Its kind; empty: the one of its action.
        present: The number of agents of the team; 0: that is not known.
    """
    to = [name(agent) for agent in row.to] if isinstance(row.to, tuple) else []
    kind, reason = kind or healing_kind(row), one_line(row.reason, MOST_REASON)
    text, action = _HEALING[kind][0], name(row.action)
    return _fill_in(text, kind, to, present, action=action, cut_reason=reason)


def actions_text(kind: str, number: int, recipients: Iterable[str], present: int = 0) -> str:
    """Several interventions of a kind for a reader without knowledge of the graph."""
    to = [*map(name, recipients)]
    return _fill_in(_HEALING[kind][2], kind, to, present, number=f"{number:,}")


def _fill_in(text: str, kind: str, to: Sequence[str], present: int, **parts: str) -> str:
    recipients = cut(to, most=MOST_NAMED) if len(to) > MOST_NAMED else join_clauses(to)
    if 2 < present <= len(to):
        recipients = f"all {present} agents"
    for_who = f" for {recipients}" if recipients else ""
    return text.format(who=recipients or _NOBODY.get(kind, "no agent"), for_who=for_who, **parts)


# --- incidents ---


def failed_component(row: IncidentRow) -> str | None:
    """The failed part of the monitor in an incident; ``None`` for another incident.

    Such a part was handed in: a detector, healer, gate or follower, for instance.
    """
    if row.what != FAILED or not isinstance(row.detail, Mapping):
        return None
    return name(row.detail.get("who"))


OUTAGES = {"resumed": "goes on", "owner": "new owner", "disconnected": "server back"}
"""The incidents after which the run's clock goes on, with `down_s`: for how long it stood still;
each with what is the case from there on."""


def outage_s(incident: IncidentRow) -> float:
    """Seconds of real time before an incident, in which the run's clock stood still."""
    detail = incident.detail if isinstance(incident.detail, Mapping) else {}
    down_s: Any = detail.get("down_s")
    is_time = type(down_s) in (int, float) and 0 < down_s < 1e9
    return down_s if incident.what in OUTAGES and is_time else 0.0


def without_contents(row: IncidentRow) -> IncidentRow:
    """An incident without the words of people and agents, and without lines of code."""
    if not isinstance(row.detail, Mapping):
        return row
    detail = {key: value for key, value in row.detail.items() if key not in CONTENTS}
    return IncidentRow(row.t, row.us, row.what, detail)


def incident_text(row: IncidentRow) -> str:
    """An incident in words."""
    detail = row.detail
    if isinstance(detail, Mapping) and detail.keys() >= {"who", "what"}:
        return one_line(f"{detail['who']} {row.what}: {detail['what']}")
    if isinstance(detail, Mapping | list | tuple):
        return one_line(f"{row.what}: {value_text(detail)}")
    return one_line(f"{row.what}: {detail}")
