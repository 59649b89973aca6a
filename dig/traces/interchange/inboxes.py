"""Teams of Claude Code: the members (`config.json`) and their inboxes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dig.errors import TraceError
from dig.graph.records import Record

from .scribe import Guesses
from .source_files import head_of, read_json
from .talks import NO_TURN, as_nodes, micros_of, text_of
from .threads import Thread, ThreadStep, ThreadWriter

_KEYS = ('"from"', '"text"', '"read"')


def is_team(path: Path, head: str) -> bool:
    """Whether a file is a team's configuration or an inbox, by the beginning."""
    return _is_config(head) or (head.startswith("[") and all(key in head for key in _KEYS))


def _is_config(head: str) -> bool:
    return head.startswith("{") and '"leadAgentId"' in head and '"members"' in head


def team_files(path: Path) -> list[Path]:
    """The files of a file's team: the configuration first, then the inboxes."""
    is_config = _is_config(head_of(path))
    config = path if is_config else path.parent.parent / "config.json"
    inboxes = (path.parent / "inboxes" if is_config else path.parent).glob("*.json")
    files = [file for file in sorted(inboxes) if file.is_file() and not file.is_symlink()]
    return [config] * config.is_file() + [file for file in files if is_team(file, head_of(file))]


def is_team_part(path: Path) -> bool:
    """Whether a team's file is read with the configuration, or with the first inbox."""
    return team_files(path)[0] != path


def read_team(path: Path) -> tuple[list[Record], Guesses]:
    """The records of a team, and the guesses.

    Raises:
        TraceError: A file cannot be read.
    """
    guesses = Guesses()
    contents = {file: read_json(file) for file in team_files(path)}
    config = next((node for node in contents.values() if isinstance(node, dict)), {})
    lead_name = str(config.get("leadAgentId") or "team-lead").partition("@")[0]
    threads = _members(config, lead_name)
    lead = threads[lead_name]
    for file, letters in contents.items():
        if letters is not config:
            owner = threads.setdefault(file.stem, Thread(file.stem))
            _deliver(threads, owner, as_nodes(letters), lead)
    guesses.note("a message of a team was read when it was sent, if it was read at all")
    guesses.note("what the program says itself, and what a member did not read, are notices")
    told = [step.thread.text or "" for step in lead.steps if step.kind == "tell" and step.thread]
    if any('"shutdown_request"' in text for text in told):
        guesses.note("a lead that asked to shut down has answered when nothing more was said")
        last = max(step.us for thread in threads.values() for step in thread.steps)
        lead.steps.append(ThreadStep(last + 1, "answer"))
    _call_all(lead, threads, guesses)
    for thread in threads.values():
        thread.steps.sort(key=lambda step: step.us)
        thread.steps += [ThreadStep(step.us, "rest") for step in thread.steps[-1:]]
    if not lead.steps:
        raise TraceError(path, None, NO_TURN)
    name = str(config.get("name") or path.name)
    return ThreadWriter(name, [lead], guesses).write(path.name), guesses


def _call_all(lead: Thread, threads: dict[str, Thread], guesses: Guesses) -> None:
    """Have the lead begin, and call all members without a configuration."""
    calls = {step.thread: step for step in lead.steps if step.kind == "call" and step.thread}
    first = min((step.us for t in threads.values() for step in t.steps if step.us), default=0)
    for thread in threads.values():
        if thread in calls:
            times = (step.us for step in [calls[thread], *thread.steps])
            calls[thread].us = min(times)
        elif thread is not lead:
            guesses.note("a member that no configuration names was called by the lead")
            thread.type = "notice"  # nobody knows what it was asked, so nothing is missing
            lead.steps.append(ThreadStep(first, "call", thread=thread))
    if first and all(step.kind != "ask" for step in lead.steps):
        lead.steps.append(ThreadStep(first, "ask"))
    order = ("ask", "call")
    lead.steps.sort(key=lambda step: (step.us, (*order, step.kind).index(step.kind)))


def _members(config: dict[str, Any], lead_name: str) -> dict[str, Thread]:
    """The threads of the lead and of the members; the lead called each at the moment of joining."""
    lead = Thread(lead_name)
    threads = {lead_name: lead}
    if (created := micros_of(config.get("createdAt"))) is not None:
        goal = text_of(config.get("description")) or None
        lead.steps.append(ThreadStep(created, "ask", text=goal))
    for member in as_nodes(config.get("members")):
        name, joined = str(member.get("name")), micros_of(member.get("joinedAt"))
        if name not in threads and joined is not None:
            title, prompt = text_of(member.get("agentId")), text_of(member.get("prompt")) or None
            threads[name] = Thread(name, title, prompt, is_background=True)
            lead.steps.append(ThreadStep(joined, "call", threads[name]))
    return threads


def _deliver(
    threads: dict[str, Thread], owner: Thread, letters: Iterable[Any], lead: Thread
) -> None:
    for letter in letters:
        us, text = micros_of(letter.get("timestamp")) or 0, text_of(letter.get("text"))
        name, is_read = str(letter.get("from")), bool(letter.get("read"))
        is_notice = text.startswith('{"type":') or not (is_read or owner is lead)
        sender = threads.setdefault(name, Thread(name))
        type = "notice" if is_notice else "message"
        message = Thread(f"message of {name}", text=text, type=type, to=[owner])
        sender.steps.append(ThreadStep(us, "tell", message))
        if is_read and owner is not sender:
            owner.steps.append(ThreadStep(us, "read", message))
