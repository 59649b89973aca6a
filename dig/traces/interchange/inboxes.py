"""Teams of Claude Code: the members (`config.json`) and their inboxes."""

from __future__ import annotations

from pathlib import Path

from dig.graph.records import Record

from .scribe import Guesses
from .source_files import head_of, read_json
from .talks import Node, as_nodes, micros_of, text_of
from .threads import Thread, ThreadStep, write_thread

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
    guesses.note("a message of a team was read when it was sent, if it was read at all")
    guesses.note("what the program says itself, and what a member did not read, are notices")
    contents = {file: read_json(file) for file in team_files(path)}
    config = next((node for node in contents.values() if isinstance(node, dict)), {})
    team = _Team(config, guesses)
    for file, letters in contents.items():
        for letter in as_nodes(letters) if letters is not config else ():
            team.deliver(letter, file.stem)
    team.end()
    return write_thread(path, team.lead, guesses, str(config.get("name") or ""))


class _Team:
    """The threads of the lead and the members; the lead calls each at the moment of joining."""

    def __init__(self, config: Node, guesses: Guesses) -> None:
        self.lead = Thread(str(config.get("leadAgentId") or "team-lead").partition("@")[0])
        self._guesses, self._threads = guesses, {self.lead.name: self.lead}
        created, goal = micros_of(config.get("createdAt")), text_of(config.get("description"))
        self._ask = ThreadStep(created or 0, "ask", text=goal or None)
        self._calls, self._is_over = dict[Thread, ThreadStep](), False
        for member in as_nodes(config.get("members")):
            name, joined = str(member.get("name")), micros_of(member.get("joinedAt"))
            title, prompt = text_of(member.get("agentId")), text_of(member.get("prompt")) or None
            if name not in self._threads and joined is not None:
                self._call(Thread(name, title, prompt, is_background=True), joined)

    def _call(self, thread: Thread, us: int) -> Thread:
        self._threads[thread.name] = thread
        self._calls[thread] = ThreadStep(us, "call", thread)
        return thread

    def _member(self, name: str) -> Thread:
        if name in self._threads:
            return self._threads[name]
        self._guesses.note("a member that no configuration names was called by the lead")
        # Nobody knows what it was asked, so nothing is missing.
        return self._call(Thread(name, type="notice"), 0)

    def deliver(self, letter: Node, owner_name: str) -> None:
        """Take a letter in the inbox of a member."""
        us, text = micros_of(letter.get("timestamp")) or 0, text_of(letter.get("text"))
        name, is_read = str(letter.get("from")), bool(letter.get("read"))
        sender, owner = self._member(name), self._member(owner_name)
        is_notice = text.startswith('{"type":') or not (is_read or owner is self.lead)
        type = "notice" if is_notice else "message"
        message = Thread(f"message of {name}", text=text, type=type, to=[owner])
        sender.steps.append(ThreadStep(us, "tell", message))
        if is_read and owner is not sender:
            owner.steps.append(ThreadStep(us, "read", message))
        self._is_over |= sender is self.lead and '"shutdown_request"' in text

    def end(self) -> None:
        """Put the steps of all in order of time."""
        steps = [step for thread in self._threads.values() for step in thread.steps]
        for thread, call in self._calls.items():
            call.us = min(step.us for step in [call, *thread.steps])
        self.lead.steps[:0] = [self._ask, *self._calls.values()]
        self._ask.us = min(step.us for step in [*self.lead.steps, *steps])
        if self._is_over:
            guess = "a lead that asked to shut down has answered when nothing more was said"
            self._guesses.note(guess)
            self.lead.steps.append(ThreadStep(max(step.us for step in steps) + 1, "answer"))
        for thread in self._threads.values():
            thread.steps.sort(key=lambda step: step.us)
            thread.steps += [ThreadStep(step.us, "rest") for step in thread.steps[-1:]]
