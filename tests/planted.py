"""Bugs to plant in dig, each of which the tests must notice (`make mutants`).

They break what somebody thought about: lineage, order, holds, windows, limits. What a slip of the
pen breaks, `operators.py` makes. A text must stand exactly once in its file: where a change of dig
moves it, fit the entry to the new code; take one out only if what it breaks cannot be broken any
more, and say so in the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SIMULATOR, SHELL, WRAPPED = "simulator", "shell", "wrapped"


class Mutant(NamedTuple):
    """A bug: where `text` stands in a file below dig/, `new` stands instead.

    With an engine, random schedules on it must notice the bug; without one, the suite must. For
    wrapped teams the schedules are those of their tests, which draw teams and where to cancel them.
    """

    file: str
    breaks: str
    text: str
    new: str
    engine: str = ""


def bugs(file: str, entries: Sequence[tuple[str, str, str]], engine: str = "") -> list[Mutant]:
    """The bugs of a file: what each breaks, the text, and what stands instead."""
    return [Mutant(file, *entry, engine) for entry in entries]


IN_SUITE = [
    *bugs("detectors/patterns/cross_lineage.py", [
        ("lineages that differ count as disjoint",
         "and _first(alike).roots.isdisjoint(event.roots)",
         "and _first(alike).roots != event.roots"),
        ("a lineage is compared with one other only",
         "[other for other in alike if roots.isdisjoint(other)] for roots",
         "[other for other in alike if roots.isdisjoint(other)][:1] for roots"),
        ("conflicts stand by lineage, in the order of the buffer",
         "merge(*(alike.values() for alike in strange), key=by_number)",
         "(other for alike in strange for other in alike.values())"),
        ("in a pair the event stands first that was generated last", "if b > n)", "if b < n)"),
    ]),
    *bugs("detectors/patterns/missing_termination.py", [
        ("the activation that ended last is not told", '{"last": problem.last}', '{"last": None}'),
        ("the same agent is asked again to submit",
         "yield Create(note, (helper,), without=without)", "yield Create(note, without)"),
    ]),
    *bugs("detectors/patterns/idle.py", [
        ("an alarm goes off although its time has moved on",
         "            if due == moment:\n", "            if due is not None and due >= moment:\n"),
        ("what was raised is raised again about a problem that is parted from others",
         "other.raised, other.restarted = self.raised, self.restarted",
         "other.restarted = self.restarted"),
        ("an alarm that went off is never set again",
         "interval.raised, interval.alarm = interval.start(problem), None",
         "interval.raised = interval.start(problem)"),
        ("a problem is raised once, however many intervals it has",
         "is_raised = interval.raised == interval.start(problem)",
         "is_raised = interval.raised is not None"),
        ("a deadlock that was raised before an activation stalled is not raised after it",
         "interval.restarted = finding.us",
         "interval.restarted = finding.us; interval.raised = interval.raised and finding.us"),
    ]),
    *bugs("detectors/patterns/event_window.py", [
        ("an event that is orphaned again is not raised again",
         "if self._raised.get(event.id) != since and", "if event.id not in self._raised and"),
        ("an interval begins at a record before it",
         "if since is None or since > us:", "if since is None:"),
    ]),
    *bugs("detectors/patterns/orphaned_event.py", [
        ("the window of another pattern is used",
         'window = "oe_window_s"', 'window = "dl_window_s"'),
        ("lost work whose generator has left is told of, and not given to anyone",
         'yield Reroute(event.id, note, (helper or "",), action="redeliver")',
         "yield from self.heal(graph, finding)"),
    ]),
    *bugs("detectors/patterns/early_termination.py", [
        ("in a session open work on other problems counts too",
         "open_events = sorted(graph.problems.open_events(requests).values(), key=by_number)",
         "open_events = graph.open_events()"),
        ("an answer is accepted before what it lacks was handed out again",
         'finding.severity != "error" or not self._insists(graph, submitter, lists)', "True"),
        ("needed work that is still open makes no error",
         "is_needed = bool(uncovered)", "is_needed = bool(lost_events)"),
    ]),
    *bugs("graph/problems.py", [
        ("a notice from outside is a problem",
         "problem.is_posed |= is_work", "problem.is_posed = True"),
        ("in a session a notice from outside is a problem",
         "problem = Problem(sources, is_work)", "problem = Problem(sources, True)"),
        ("in a session a failed request without an event ends the looking",
         "(() if sources is None else self.problems_of(sources))",
         "([one for *_, one in self._ranges] if sources is None else self.problems_of(sources))"),
    ]),
    *bugs("graph/rewrites.py", [
        ("what a notice concerns is forgotten",
         "inputs[0].roots, inputs[0].sources",
         "inputs[0].roots, inputs[0].sources if inputs[0].work else NOTHING"),
        ("an orphan takes the cause of the latest record",
         "if (event.cause is None) != (place > 0):",
         "if not place or event.cause is not None:"),
        ("what has expired is told to have had no recipient",
         '_place(state, event, "expired")', '_place(state, event, "no_recipient")'),
        ("an activation that a leave cuts off counts as one that ended",
         "state.problems.end(state.running.pop(agent.activation.id), record.us, has_left=True)",
         "state.problems.end(state.running.pop(agent.activation.id), record.us)"),
        ("to read a note by default is no progress",
         "activation.is_progress = True", "activation.is_progress |= event.id in named"),
    ]),
    *bugs("graph/state.py", [
        ("an event that is named again after it was closed has no roots",
         "self.roots = roots_of(self._history, self.n)", "self.roots = RangeSet()"),
        ("an event that is named again after it was closed concerns nothing",
         "self.sources = sources_of(self._history, self.n)", "self.sources = RangeSet()"),
        ("a problem is given up before it is said that nobody submits an answer",
         "return not self.concerning() and not any(", "return not self.concerning() or any("),
    ]),
    *bugs("graph/history.py", [
        ("who repeats something is not remembered as one that solved it",
         "self.further_solvers.setdefault(n, []).append(v)",
         "self.further_solvers.setdefault(n, [v])"),
    ]),
    *bugs("detectors/watch.py", [
        ("windows are looked at after the answer that ends a run",
         "if self.graph.is_over:\n            self.not_before",
         "if self.graph.finished:\n            self.not_before"),
        ("what was due before a record is raised after it",
         "return self.advance(record.us) + self.feed(record)",
         "graph.apply(record)\n"
         "            return self.advance(record.us) + self.look(record)"),
        ("a detector that names no kinds is shown incidents",
         "kinds = CHANGING if detector.kinds is None else detector.kinds",
         "kinds = KINDS if detector.kinds is None else detector.kinds"),
    ]),
    *bugs("graph/retention.py", [
        ("what the submitter of a bounced answer consumed is gone",
         "event.final or not event.consumed]", "not event.final and not event.consumed]"),
        ("of those who solved what is still there, only the first is known",
         "self.keep_rows(solvers)", "self.keep_rows(solvers[:1])"),
    ]),
    *bugs("runtime/host.py", [
        ("what an agent says after it was taken out is silent",
         "return self.monitor.incident(LATE_OUTPUT, detail)", "return []"),
    ]),
    *bugs("detectors/patterns/excessive_rerouting.py", [
        ("a ping-pong goes on among the same agents",
         "helper = step.helper(graph, most if is_closed else path)", "helper = path[0]"),
        ("only a return to the first agent makes it a warning",
         "if len({*map(base_name, event.reroutes)}) == n:",
         "if event.reroutes[0] not in event.reroutes[1:]:"),
        ("the limit is counted, and not the first number above it",
         "if n >= GRAVE * least", "if n >= GRAVE * (least - 1)"),
        ("an instance of an agent is another agent that reroutes",
         "{*map(base_name, event.reroutes)}", "{*event.reroutes}"),
    ]),
    *bugs("detectors/patterns/deadlock.py", [
        ("what a failed agent holds waits for a second step",
         'if step.troubles.get(agent) == "failed"]', "if False]"),
    ]),
    *bugs("detectors/ladder.py", [
        ("a problem that begins anew is handed out to agents that swallow work",
         'if trouble == "swallowed"]', "if False]"),
    ]),
    *bugs("monitor/ladders.py", [
        ("the answer to one problem ends the steps about another",
         "return not sources or bool(graph.unanswered_sources(sources, 1))", "return False"),
    ]),
    *bugs("runtime/simulator.py", [
        ("a repeat starts agents as soon as the run did",
         "latency_s = self._latency(effect.agent, self._repeats)",
         "latency_s = self._latency(effect.agent, ())"),
    ]),
    *bugs("monitor/schedule.py", [
        ("a policy acts again before what else happened at its moment",
         "if not (us < now or (us == now and self._graph.t + 1 >= t)):", "if not us <= now:"),
    ]),
    *bugs("diagnosis/stages/deciding.py", [
        ("a loop that the texts do not show raises an error",
         "if loop is None:\n            self.notes",
         'if loop is None and responsible == "none":\n            self.notes'),
        ("the model's verdict wins although the testimony explains it away",
         "if verdict is not None and verdict[1] in origins:",
         "if verdict is not None and verdict[1] in statuses:"),
        ("the last of several origins is answered",
         'first = [*origins, *by_status.get("open", [])]',
         'first = [*reversed(origins), *by_status.get("open", [])]'),
    ]),
    *bugs("detectors/turn_lengths.py", [
        ("of ten durations the longest is taken",
         "-(-9 * len(self) // 10) - 1", "9 * len(self) // 10"),
        ("of too many durations the newest goes", "        self._latest.append(us)\n",
         "        if len(self) < LATEST:\n            self._latest.append(us)\n"),
    ]),
    *bugs("detectors/patterns/stalled_activation.py", [
        ("an instance learns for itself",
         "self._agents.setdefault(base_name(name), _Agent())", "_Agent()"),
        ("of the instances of an agent only the first one stalls",
         "            self._drop(activation)\n            if activation.id",
         "            self._agent(activation.agent).running.clear()\n            if activation.id"),
        ("a limit that grew since counts as it was",
         "            if due == moment:\n", "            if due is not None and due >= moment:\n"),
        ("a limit by the turns of the team may be below that of activations",
         "lengths, least = self._team, self._team_least", "lengths = self._team"),
    ]),
    *bugs("detectors/patterns/late_delivery.py", [
        ("an event with a copy in a buffer is late",
         "event.place == FLYING and", "event.place & FLYING and"),
        ("the window of orphans is that of late deliveries",
         'window = "late_window_s"', 'window = "oe_window_s"'),
    ]),
    *bugs("detectors/patterns/repeats.py", [
        ("equal inputs count once", "tuple(sorted(contents))", "tuple(sorted(set(contents)))"),
        ("an input that says nothing is no input",
         "(content := old.get(event.id)) is None:\n                return None",
         "(content := old.get(event.id)) is None:\n                continue"),
        ("what was cut alike is the same", 'key[:1] == "$"', 'key[:2] == "$$"'),
        ("what has a new part may have other parts, too, that do not matter",
         'payload.keys() == {"$given", "$new"}', 'payload.keys() >= {"$given", "$new"}'),
    ]),
    *bugs("detectors/patterns/repeated_message.py", [
        ("what is said to another instance is something else",
         "tuple(map(base_name, record.to))", "record.to"),
        ("a message that is said again is not among the latest",
         "before, last = messages.pop(message", "before, last = messages.get(message"),
        ("of too many messages the newest is forgotten",
         "del messages[next(iter(messages))]", "messages.popitem()"),
    ]),
    *bugs("detectors/patterns/livelock.py", [
        ("the other that spoke first is answered",
         "return from_others[-1] if from_others", "return from_others[0] if from_others"),
        ("what was only seen is answered", "for event in ended.consumed if event.by is not None",
         "for event in ended.inputs if event.by is not None"),
        ("an agent goes round alone", "if len(agents) < 2", "if not agents"),
    ]),
    *bugs("graph/records.py", [
        ("whatever follows a # is the number of an instance", "(?<=.)#[0-9]+\\Z", "(?<=.)#.*\\Z"),
    ]),
    *bugs("graph/graph.py", [
        ("events that have a problem in common are about different ones",
         "a.isdisjoint(b)", "a.ranges != b.ranges"),
    ]),
    *bugs("detectors/usual.py", [
        ("the first of few runs tells what is usual", "LEAST_RUNS = 19", "LEAST_RUNS = 1"),
        ("beyond its list the last count goes on", "counts[j - 1] if j <= len(counts) else 0",
         "counts[min(j, len(counts)) - 1] if counts else 0"),
        ("findings of other patterns count too",
         "self._counts.setdefault(key,", 'self._counts.setdefault("",'),
        ("an early answer is usual whatever it leaves behind",
         "return f\"ET {','.join(sorted(types))}\"", 'return "ET"'),
    ]),
    *bugs("detectors/mended.py", [
        ("one of its inputs used elsewhere mends a stalled activation",
         "self.mended[number] |= not self._unconsumed[number]", "self.mended[number] = True"),
        ("who reads a note mends a deadlock",
         "if record.outputs or any(graph.event(event).work for event in moved):",
         "if record.outputs or any(moved):"),
        ("a request that failed is mended by none that comes after another answer",
         "            self._settle((NEVER,), requests)\n",
         "            self._settle((NEVER,), aims)\n"),
        ("an answer mends what it goes back to without memory only",
         "return list(graph.asked_problems(final)),", 'return _sources(graph, {"event": final}),'),
    ]),
    *bugs("detectors/patterns/failed_turn.py", [
        ("an earlier turn of the agent that answers makes good",
         "not self.makers <= {agent}", "bool(self.makers)"),
        ("work that says the same does not make good",
         "return {*work, *(content for", "return {*work, *(-1 for"),
    ]),
]  # fmt: skip

SCHEDULED = [
    *bugs("monitor/sinks.py", [
        ("a sink gives up what a detector still waits for",
         "self.keep, self.pinned, self.given_up", "self.keep, self.pinned"),
    ], SIMULATOR),
    *bugs("monitor/holds.py", [
        ("a system event is never delivered",
         "Output(note, to, SYSTEM), to, about=about, scope=scope)",
         "Output(note, to, SYSTEM), to, about=about, scope=scope, hold=False)"),
        ("events arrive in the reverse order",
         "        return list(held)", "        return list(held)[::-1]"),
        ("what waited behind a gate comes last in, first out",
         "event, number = line.popleft()", "event, number = line.pop()"),
    ], SIMULATOR),
    *bugs("monitor/recorder.py", [
        ("every ninth record is not written",
         "self._sinks.write(rows)", "self._sinks.write([row for row in rows if row.t % 9])"),
        ("what a window raises waits for the next record",
         "            findings = watch.advance(now)\n            self._report",
         "            findings = []\n            self._report"),
        ("a run goes on after a record could not be written",
         "self.effects.clear()\n            raise",
         "self.can_write, self._is_closed, self.is_over = True, False, False"),
    ], SIMULATOR),
    *bugs("monitor/healing.py", [
        ("one subject may use the budget of the run",
         'f"subject {subject}": self._budget.per_subject',
         'f"subject {subject}": self._budget.per_run'),
        ("one pattern may use the budget of the run",
         'f"pattern {finding.pattern}": self._budget.per_pattern',
         'f"pattern {finding.pattern}": self._budget.per_run'),
        ("a reroute is written down and does not happen",
         "            self._send(wish)\n            moved.add(wish.event)", "            pass"),
        ("a system event has another name than was written down",
         "self._holds.emit_notice(wish.note, wish.to, name, shown_about, scope)",
         "self._holds.emit_notice(wish.note, wish.to, about=shown_about, scope=scope)"),
    ], SIMULATOR),
    *bugs("detectors/watch.py", [
        ("what a detector said before it failed counts",
         "_check_finding(graph, finding) for finding in raised]",
         "findings.append(_check_finding(graph, finding)) for finding in raised] and []"),
    ], SIMULATOR),
    *bugs("monitor/payloads.py", [
        ("what an event carries is dropped while it is on its way",
         "if event.id in graph.live or event", "if event.copies or event"),
    ], SIMULATOR),
    *bugs("runtime/host.py", [
        ("a failed activation has read its notes",
         "fates = _delay([event.id for event in running.inputs] if running else ())",
         "fates: tuple[Fate, ...] = ()"),
    ], SIMULATOR),
    *bugs("runtime/simulator.py", [
        ("an activation that ended with its agent's leaving ends again",
         "self._at(us, happen, is_due)", "self._at(us, happen)"),
        ("an agent may take longer than its time",
         "if think > micros(limit_s):", "if think > 2 * micros(limit_s):"),
    ], SIMULATOR),
    *bugs("runtime/bus.py", [
        ("what comes while an agent works on the bus does not wake it",
         "                    await self._activate(task)",
         "                    await self._activate(task); task.mail = anyio.Event()"),
        ("an agent on the bus may take as long as it likes",
         "anyio.move_on_after(timeout_s / self._setup.speed)", "anyio.move_on_after(None)"),
        ("what a gate on the bus decides is not told to the monitor",
         "self._request(partial(monitor.resolve,", "return (partial(monitor.resolve,"),
    ], SHELL),
    *bugs("traces/journal/appending.py", [
        ("a write that is cut short is not finished",
         "            while unwritten:  # a write may be cut short",
         "            if unwritten:  # a write may be cut short"),
    ], SIMULATOR),
    *bugs("adapters/base/calls.py", [
        ("an answer that comes back is handed out all the same",
         "await self._was_bounced(turn, self._payload_of(result))",
         "(await self._was_bounced(turn, self._payload_of(result)) and False)"),
        ("a call that raised or was cancelled stays open for ever",
         "        if error is not None:\n            self._fail(error)\n", "        return\n"),
        ("what an agent raises does not reach its caller",
         "            self._fail(error)\n\n    async def run(",
         "            self._fail(error)\n        return True\n\n    async def run("),
        ("a call that healing sent to another agent goes to the first all the same",
         "if event is not None and event.copies and self._instance not in event.copies:",
         "if event is None or not event.copies:"),
    ], WRAPPED),
    *bugs("adapters/base/guard.py", [
        ("a fault of the monitor reaches the team",
         "            if self._strict:\n                raise\n            return default",
         "            raise"),
    ], WRAPPED),
]  # fmt: skip
