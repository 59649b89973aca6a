"""Sessions of Claude Code as teams: hooks are the turns of a main agent and of subagents."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, chdir, suppress
from dataclasses import replace
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any

from dig._util.files import open_file
from dig._util.interrupts import interrupts_later
from dig._util.json_text import MOST_BYTES, parse
from dig.adapters.base import Session, Turn
from dig.detectors import standard, standard_healers
from dig.detectors.notes import quote_all
from dig.detectors.thresholds import CALLER_TURNS, Thresholds
from dig.runtime.setup import Setup
from dig.traces.journal.journal import RunDirectory

from .hook import ANSWER_S, SOCKET

MAIN = "main"
_Reply = dict[str, Any]
_NOTIFICATION = b"<task-notification>"


class CodingSession:
    """The monitor of a session, with a journal.

    Attributes:
        run: The run directory.
        session: The session of the monitor.
    """

    def __init__(
        self, id: str, directory: Path, options: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin a journal.

        Args:
            id: The id of the session.
            directory: The directory in which its run directory is made.
            options: The options of its hooks: `--hold`, `--contents`.
            clock: Seconds, from any beginning.

        Raises:
            JournalError: The run directory cannot be made.
        """
        # Hooks show no sign of life between begin and end, so no turn is too long.
        limits = replace(
            Thresholds().limits, activation_limit_s=86_400.0, stall_factor=None,
            livelock_turns=CALLER_TURNS,
        )  # fmt: skip
        setup = Setup(f"claude {id}", limits=limits, detectors=standard, healers=standard_healers)
        self.run = RunDirectory(directory, {"run": setup.run}, header=setup.header())
        self._holds, self._has_contents = "--hold" in options, "--contents" in options
        self.session = Session(
            [MAIN], setup, mode="heal" if self._holds else "observe", sink=self.run.journal,
            capabilities={"annotate", "bounce"}, clock=clock, keeps_time=False,
        )  # fmt: skip
        self._turns: dict[str, Turn] = {}
        self._parents: dict[str, str] = {}
        self._tasks: dict[str, list[dict[str, Any]]] = {}  # by type, of subagents yet to begin
        self._adopted: set[str] = set()  # subagents whose caller has gone
        self._held: set[tuple[str, str]] = set()  # agents, and the subagents they were held for
        self._stop: dict[str, Any] | None = None  # of the main agent, while it waits

    def note(self, hook: dict[str, Any]) -> _Reply:
        """Take note of a hook's input; return the output, empty if the agent goes on."""
        kind, name = hook["hook_event_name"], self._name_of(hook)
        if kind == "SubagentStart" and name not in self._parents:
            self._give_task(name, hook)
        if name not in (MAIN, *self._parents):
            return {}  # it began before the monitor
        missing = self._awaited(name, hook)
        turn = self._act(name, missing)
        if kind == "SubagentStart":
            notes = {"hookEventName": kind, "additionalContext": "\n".join(turn.notebook.read())}
            return {"hookSpecificOutput": notes} if turn.notes else {}
        if kind == "PreToolUse":
            self._note_tool(name, turn, hook)
            return {}
        return (self._stop_main if name == MAIN else self._stop_subagent)(turn, hook, missing)

    def _name_of(self, hook: dict[str, Any]) -> str:
        """The agent of a hook, known by the id even if the type has changed."""
        id = hook.get("agent_id")
        if hook["hook_event_name"] == "TeammateIdle":
            id = f"{hook['teammate_name']}@{hook.get('team_name')}"
        new = f"{hook.get('agent_type')} {id}" if id else MAIN
        return next((agent for agent in self._parents if agent.split()[-1] == id), new)

    def _note_tool(self, name: str, turn: Turn, hook: dict[str, Any]) -> None:
        """Take note of a task for a subagent yet to begin, or of a message."""
        given = hook["tool_input"]
        if hook["tool_name"] != "SendMessage":
            task = {"subagent_type": "general-purpose", **given, "by": name}
            self._tasks.setdefault(task["subagent_type"], []).append(task)
            return
        # Others are in sessions of their own: whether they read a message is not seen.
        recipients = [agent for agent in self._parents if agent.split()[-1] == given.get("to")]
        if recipients:
            turn.send(self._words(given.get("message")), recipients, awaits=False)
            turn.act()

    def _stop_subagent(self, turn: Turn, hook: dict[str, Any], missing: list[str]) -> _Reply:
        """End the turn of a subagent with a report, or hold the subagent."""
        name, kind = turn.instance, hook["hook_event_name"]
        # An agent that is woken by one report is not held again for the others.
        reasons = self._reasons(name, missing)
        if reasons and kind == "SubagentStop" and self._may_hold(hook):
            self.session.guard.incident("held", {"agent": name, "for": missing})
            return self._block(reasons)
        turn.end(self._words(hook.get("last_assistant_message")), self._parents[name], "report")
        self._parents |= dict.fromkeys(missing, self._parents[name])
        self._adopted.update(missing)
        return {}

    def _stop_main(self, turn: Turn, hook: dict[str, Any], missing: list[str]) -> _Reply:
        """Take the answer of the main agent, hold the agent, or wait for unread reports."""
        reasons = self._reasons(MAIN, missing)
        holds = self._may_hold(hook) and (bool(reasons) or not missing)
        if missing and not holds:
            turn.wait_for(0)  # until the reports come, or the session ends
            self._stop = {**hook, "stop_hook_active": True}
            return {}
        answer = turn.submit(self._words(hook.get("last_assistant_message")), bounces=holds)
        self.session.release(answer)
        if turn.was_bounced(answer):
            return self._block(reasons, *turn.notebook.texts[-1:])
        return {}

    def _may_hold(self, hook: dict[str, Any]) -> bool:
        return self._holds and not hook.get("stop_hook_active")

    def _reasons(self, name: str, missing: list[str]) -> set[tuple[str, str]]:
        """The new reasons to hold an agent, each with a subagent; an agent is not held again."""
        return {(name, child) for child in missing} - self._held

    def tick(self) -> None:
        """Do all due work; a stop becomes an answer when no report is awaited any more."""
        # The last rows of a transcript are written a moment after the hook has run.
        if self._stop and not self._awaited(MAIN, self._stop):
            self.note(self._stop)
        self.session.tick()

    def close(self) -> None:
        """End the journal; reports still awaited by the main agent are lost."""
        self.tick()
        if self._stop:
            self._turns[MAIN].submit(None, bounces=False)
        self.session.close()
        self.run.journal.close()

    def _give_task(self, name: str, hook: dict[str, Any]) -> None:
        """Give a new subagent the first task for its type."""
        task = (self._tasks.get(hook["agent_type"]) or [{"by": MAIN}]).pop(0)
        turn = self._act(task["by"], self._awaited(task["by"], hook))
        self._parents[name] = task["by"]
        self.session.reserve_instance(name)
        turn.send(self._words(task.get("prompt")), name, awaits=False)
        turn.act()

    def _awaited(self, name: str, hook: dict[str, Any]) -> list[str]:
        """The subagents of an agent at work, or with a report not shown yet."""
        graph, turns = self.session.monitor.graph, self._turns
        children = [child for child, parent in self._parents.items() if parent == name]
        events = graph.agents[name].buffer.values() if name in graph.agents else ()
        senders = {graph.history.sender(event.n) for event in events}
        hidden = _hidden(Path(hook["transcript_path"]), {*children} & senders, self._adopted)
        return [child for child in children if child in hidden or turns[child].is_open]

    def _act(self, name: str, missing: list[str]) -> Turn:
        """Have an agent use the events of the buffer, without reports not shown yet."""
        turn, graph = self._turns.get(name), self.session.monitor.graph
        if turn is None or not turn.is_open:
            request = [self.session.request(None, MAIN)] if name == MAIN else None
            turn = self._turns[name] = self.session.begin(name, request)
        self._stop = None if name == MAIN else self._stop
        for event in [*graph.agents[name].buffer.values()]:
            if not turn.holds(event.id) and graph.history.sender(event.n) not in missing:
                turn.receive(event.id)
        turn.act()  # a turn goes on until its agent stops
        return turn

    def _block(self, reasons: set[tuple[str, str]], *notes: str) -> dict[str, Any]:
        self._held |= reasons
        names = quote_all(sorted(child for _, child in reasons))
        first = f"You are held once: use what these report, then stop: {names}."
        return {"decision": "block", "reason": " ".join((first,) * bool(reasons) + notes)}

    def _words(self, words: Any) -> Any:
        return words or None if self._has_contents else None


def _hidden(transcript: Path, agents: set[str], adopted: set[str]) -> set[str]:
    """The agents in the background with a report missing from a transcript."""
    hidden: set[str] = set()
    with suppress(OSError), open_file(transcript) as file:
        hidden |= agents & adopted
        for line in file if agents else ():
            named = {agent for agent in agents if agent.split()[-1].encode() in line}
            with suppress(AttributeError, KeyError, RecursionError, ValueError):
                row: dict[str, Any] = json.loads(line) if named else {"type": ""}
                result = row.get("toolUseResult") or {}
                status = result.get("status") or result.get("task", {}).get("status")
                if status in ("async_launched", "remote_launched", "running"):
                    hidden |= named
                # Notifications in rows of another type wait in a queue, and were not shown yet.
                elif status or (row["type"] in ("user", "attachment") and _NOTIFICATION in line):
                    hidden -= named
    return hidden


def watch(directory: Path, tell: Callable[[str], object]) -> None:
    """Listen to the hooks of all sessions, until interrupted; the latest monitor is listened to.

    Args:
        directory: The directory of the socket, and of the run directories.
        tell: Takes a line about each new session, and about each hook that is not understood.

    Raises:
        OSError: The socket cannot be made.
    """
    directory.mkdir(0o700, parents=True, exist_ok=True)
    (directory / ".gitignore").write_text("*\n")  # what agents do is no part of the project
    sessions: dict[str, CodingSession] = {}
    with chdir(directory), socket(AF_UNIX) as server, ExitStack() as stack:
        Path(SOCKET).unlink(missing_ok=True)
        server.bind(SOCKET)
        os.chmod(SOCKET, 0o600)
        server.listen(128)
        server.settimeout(ANSWER_S)
        tell(f"hooks are listened to in {directory}")
        while True:
            # Ctrl-C in the middle of a step would leave a journal that cannot be ended.
            with suppress(TimeoutError), server.accept()[0] as client, interrupts_later():
                client.settimeout(ANSWER_S)
                try:
                    options, _, text = client.makefile("rb").read(MOST_BYTES).partition(b"\n")
                    hook = parse(text.decode(), "a hook")
                    if (id := str(hook["session_id"])) not in sessions:
                        sessions[id] = CodingSession(id, directory, options.decode())
                        stack.callback(sessions[id].close)
                        tell(f"session {id}: {sessions[id].run.path}")
                    if output := sessions[id].note(hook):
                        client.sendall(json.dumps(output).encode() + b"\n")
                except Exception as error:  # one hook must not end the monitor of the others
                    tell(f"a hook was not understood: {error!r}")
            with interrupts_later():
                for session in sessions.values():
                    session.tick()
