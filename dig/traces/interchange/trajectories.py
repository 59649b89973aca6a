"""Trajectories in ATIF, the Agent Trajectory Interchange Format (1.0 to 1.7)."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from dig.errors import TraceError
from dig.graph.records import Record
from dig.traces.usage import is_number

from .scribe import Guesses
from .source_files import head_of, read_json, read_text
from .talks import Node, Talk, Talks, as_node, as_nodes, micros_of, text_of

_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens",
          "cached_tokens": "cached_tokens", "cost_usd": "cost_usd"}  # fmt: skip


def is_trajectory(path: Path, head: str) -> bool:
    """Whether a file is a trajectory, by the beginning."""
    return head.startswith("{") and (
        '"ATIF-v' in head or ('"step_id"' in head and '"source"' in head)
    )


def is_subagents(path: Path) -> bool:
    """Whether a trajectory is named by another one beside it, to be read with that."""
    return path.resolve() in _named_in(path.parent)


@lru_cache(1)
def _named_in(folder: Path) -> set[Path]:
    """The files that trajectories in a directory name as those of subagents."""
    named = set[Path]()
    for file in folder.glob("*.json"):
        with suppress(TraceError):
            if file.is_file() and not file.is_symlink() and is_trajectory(file, head_of(file)):
                pieces = read_text(file).split('"trajectory_path"')[1:]
                files = {(folder / it.split('"')[1]).resolve() for it in pieces if '"' in it}
                named |= files - {file.resolve()}
    return named


def read_trajectory(path: Path) -> tuple[list[Record], Guesses]:
    """The records of a trajectory and of all subagents', and the guesses.

    Raises:
        TraceError: The file cannot be read, or is no trajectory.
    """
    root, session = _load(path), Talks(Guesses())
    _Trajectory(session, root, path).feed(session.talk(""), root["steps"])
    for talk in session.talks.values():
        talk.rest()
    return session.write(path, _agent(root) or "main")


def _load(path: Path) -> Node:
    root = read_json(path)
    if not isinstance(root, dict) or not isinstance(root.get("steps"), list):
        raise TraceError(path, None, "is no trajectory: it has no list `steps`")
    return root


def _agent(trajectory: Node) -> str:
    return str(as_node(trajectory.get("agent")).get("name") or "")


class _Trajectory:
    """Feeds the steps of a trajectory, and of the subagents', to talks."""

    def __init__(self, session: Talks, root: Node, path: Path) -> None:
        self._session, self._path = session, path
        self._embedded = {
            str(node[key]): node
            for key in ("session_id", "trajectory_id")  # until 1.6 the session's
            for node in as_nodes(root.get("subagent_trajectories"))
            if node.get(key)
        }

    def feed(self, talk: Talk, steps: Any) -> None:
        side = ""  # what Claude Code calls a sidechain stands among the steps of its caller
        for step in as_nodes(steps):
            if step.get("is_copied_context"):
                continue
            if as_node(step.get("extra")).get("is_sidechain"):
                if step.get("source") == "user" or not side:
                    side = f"sidechain {step.get('step_id')}"
                self._step(self._session.talk(side), step)
            else:
                self._step(talk, step)
        talk.rest()

    def _step(self, talk: Talk, step: Node) -> None:
        us, text = micros_of(step.get("timestamp")), text_of(step.get("message"))
        if step.get("source") == "user":
            talk.hear(us, text)
        if step.get("source") != "agent":
            return
        metrics = as_node(step.get("metrics"))
        usage = {name: metrics[key] for key, name in _USAGE.items() if is_number(metrics.get(key))}
        talk.work(us, usage)
        talk.say(text)
        calls = {str(call.get("tool_call_id")): call for call in as_nodes(step.get("tool_calls"))}
        for use, call in calls.items():
            talk.use_tool(use, str(call.get("function_name")), as_node(call.get("arguments")))
        outcomes = list[tuple[str, Node]]()
        for number, result in enumerate(as_nodes(as_node(step.get("observation")).get("results"))):
            use = str(result.get("source_call_id") or f"{step.get('step_id')}/{number}")
            refs = as_nodes(result.get("subagent_trajectory_ref"))
            uses = [use, *(f"{use}/{further}" for further in range(1, len(refs)))]
            for key, ref in zip(uses, refs, strict=False):
                self._call(talk, key, calls.get(use, {}), ref)
            outcomes += [(key, result) for key in uses]
        for use, result in outcomes:
            extra, text = as_node(result.get("extra")), text_of(result.get("content"))
            facts = {"isAsync": bool(extra.get("subagent_result_pending"))}
            talk.result(us, use, text, is_error=bool(extra.get("is_error")), facts=facts)

    def _call(self, talk: Talk, use: str, call: Node, ref: Node) -> None:
        """Take a call, as a reference to a subagent's trajectory shows."""
        keys = [str(ref[key]) for key in ("trajectory_id", "session_id") if ref.get(key)]
        inner = next((self._embedded[key] for key in keys if key in self._embedded), {})
        here = self._path.parent
        file = here / str(ref.get("trajectory_path"))
        if not inner and file.is_file() and file.resolve().parent == here.resolve():
            inner = _load(file)
        if use not in self._session.calls:
            name = str(as_node(inner.get("extra")).get("subagent_type") or _agent(inner))
            given = {**as_node(call.get("arguments")), "name": None}
            talk.call(use, given, name or str(call.get("function_name") or "agent"))
        key = keys[0] if keys else str(ref.get("trajectory_path"))
        if inner and key not in self._session.talks:
            talk = self._session.talk(key)
            talk.use = use
            _Trajectory(self._session, inner, self._path).feed(talk, inner.get("steps"))
