"""Further bugs to plant: in the patterns of ours, and in what findings are worth.

See `planted.py`, which has those of the paper's patterns, the graph and retention.
"""

from __future__ import annotations

from .planted import CLA, ER, ET, IDLE, Mutant

STALL = "detectors/patterns/stalled_activation.py"
TURNS = "detectors/turn_lengths.py"
LATE = "detectors/patterns/late_delivery.py"
LOOP = "detectors/patterns/repeated_message.py"
LIVELOCK = "detectors/patterns/livelock.py"
REPEATS = "detectors/patterns/repeats.py"
USUAL = "detectors/usual.py"
MENDED = "detectors/mended.py"
FINDING = "detectors/finding.py"
WATCH = "detectors/watch.py"

FINDINGS = [
    # -- STALL ---
    Mutant(
        "stall-least", STALL,
        "return max(least, round", "return min(least, round",
        "the least limit is the most",
    ),
    Mutant(
        "stall-percentile", TURNS,
        "-(-9 * len(self) // 10) - 1", "9 * len(self) // 10",
        "of ten durations the longest is taken",
    ),
    Mutant(
        "stall-all-durations", TURNS,
        "deque(maxlen=LATEST)", "deque(maxlen=LATEST * LATEST)",
        "durations of long ago still count",
    ),
    Mutant(
        "stall-newest-gone", TURNS,
        "        self._latest.append(us)\n",
        "        if len(self) < LATEST:\n            self._latest.append(us)\n",
        "of too many durations the newest goes",
    ),
    Mutant(
        "stall-four-are-few", STALL,
        "len(lengths) < ENOUGH_OF_AGENT", "len(lengths) <= ENOUGH_OF_AGENT",
        "five durations of an agent are too few",
    ),
    Mutant(
        "stall-ten-are-few", STALL,
        "len(lengths) < ENOUGH_OF_TEAM", "len(lengths) <= ENOUGH_OF_TEAM",
        "ten durations of the team are too few",
    ),
    Mutant(
        "stall-learns-errors", STALL,
        "(record.error or graph.ended.waits)", "graph.ended.waits",
        "turns that failed tell a limit",
    ),
    Mutant(
        "stall-learns-waiting", STALL,
        "if graph.ended.is_progress and not (record", "if not (record",
        "turns in which an agent only waited tell a limit",
    ),
    Mutant(
        "stall-newcomers", STALL,
        "for long in self._long:", "for long in ():",
        "a limit that sinks does not concern an activation that has lasted long already",
    ),
    Mutant(
        "stall-waits", STALL,
        "self._drop(graph.running[record.detail[\"activation\"]])", "pass",
        "an activation that waits on purpose has stalled",
    ),
    Mutant(
        "stall-instances", STALL,
        "self._agents.setdefault(base_name(name), _Agent())", "_Agent()",
        "an instance learns for itself",
    ),
    Mutant(
        "stall-left", STALL,
        "for activation in [a for a in running if a.agent == record.agent]:",
        "for activation in ():",
        "the activation of an agent that left stalls",
    ),
    Mutant(
        "stall-left-instances", STALL,
        "for activation in [a for a in running if a.agent == record.agent]:",
        "for activation in [*running]:",
        "once an instance left, no activation of the others can stall",
    ),
    Mutant(
        "stall-one-instance", STALL,
        "            self._drop(activation)\n            if activation.id",
        "            self._agent(activation.agent).running.clear()\n            if activation.id",
        "of the instances of an agent only the first one stalls",
    ),
    Mutant(
        "stall-order", STALL,
        "sorted(ready, key=lambda activation: activation.n)", "ready",
        "those that stall at one moment stand in the order of their limits",
    ),
    Mutant(
        "stall-all-inputs", STALL,
        " if event.work), key=by_number)", "), key=by_number)",
        "notices and notes are work that a stalled agent holds",
    ),
    Mutant(
        "stall-inputs-order", STALL,
        "sorted((event for event in activation.inputs if event.work), key=by_number)",
        "[event for event in activation.inputs if event.work]",
        "what a stalled agent holds stands in the order of its buffer",
    ),
    Mutant(
        "stall-old-limit", STALL,
        "            if due == moment:\n", "            if due is not None and due >= moment:\n",
        "a limit that grew since counts as it was",
    ),
    Mutant(
        "idle-stalled", IDLE,
        "if activation.id not in self._stalled:", "if activation.id:",
        "an activation that stalled holds a deadlock back",
    ),
    Mutant(
        "idle-stall-begins", IDLE,
        "                interval.restarted = finding.us\n", "",
        "no interval begins anew when an activation stalls",
    ),
    Mutant(
        "idle-stall-raised", IDLE,
        "                interval.restarted = finding.us\n",
        "                interval.restarted = finding.us\n"
        "                interval.raised = interval.raised and finding.us\n",
        "a deadlock that was raised before an activation stalled is not raised after it",
    ),
    Mutant(
        "idle-stalled-one", IDLE,
        "{stalled, *(a for a in self._stalled if a in graph.running)}", "{stalled}",
        "when an activation stalls, others that stalled before hold a deadlock back again",
    ),
    # -- LATE ---
    Mutant(
        "late-fault", LATE,
        " and record.policy != DISTURBANCE", "",
        "a disturbance is a purpose",
    ),
    Mutant(
        "late-kept", LATE,
        " or self._kept_events.get(event.id)", "",
        "what a policy keeps is late",
    ),
    Mutant(
        "late-waits", LATE,
        "self._kept_events.put(graph, record.detail[\"event\"], True)", "pass",
        "what is on its way is late, although the host says since when it waits on purpose",
    ),
    Mutant(
        "late-copies", LATE,
        "event.place != FLYING or", "not event.place & FLYING or",
        "an event with a copy in a buffer is late",
    ),
    Mutant(
        "late-window", LATE,
        'window = "late_window_s"', 'window = "oe_window_s"',
        "the window of orphans is that of late deliveries",
    ),
    Mutant(
        "late-to-order", LATE,
        '{"to": sorted(event.flight)}', '{"to": [*event.flight]}',
        "those whom an event has not reached stand as they were named",
    ),
    # -- LOOP ---
    Mutant(
        "loop-inputs", LOOP,
        "hash((content, record.type, to, self._inputs))",
        "hash((content, record.type, to))",
        "the same answer to different questions is a repetition",
    ),
    Mutant(
        "loop-type", LOOP,
        "hash((content, record.type, to, self._inputs))",
        "hash((content, to, self._inputs))",
        "messages of different types are the same",
    ),
    Mutant(
        "loop-to", LOOP,
        "hash((content, record.type, to, self._inputs))",
        "hash((content, record.type, self._inputs))",
        "what is said to others is said again",
    ),
    Mutant(
        "loop-inputs-order", REPEATS,
        "tuple(sorted(contents))", "tuple(contents)",
        "inputs in another order are others",
    ),
    Mutant(
        "loop-inputs-set", REPEATS,
        "tuple(sorted(contents))", "tuple(sorted(set(contents)))",
        "equal inputs count once",
    ),
    Mutant(
        "loop-unknown-inputs", REPEATS,
        "(content := old.get(event.id)) is None:\n                return None",
        "(content := old.get(event.id)) is None:\n                continue",
        "an input that says nothing is no input",
    ),
    Mutant(
        "loop-keys", REPEATS,
        "encoder(sort_keys=True)", "encoder()",
        "objects with the keys in another order are others",
    ),
    Mutant(
        "loop-cut", REPEATS,
        'key[:1] == "$"', 'key[:2] == "$$"',
        "what was cut alike is the same",
    ),
    Mutant(
        "loop-order", REPEATS,
        "sorted(payload.items())", "[*payload.items()]",
        "members in another order are another message",
    ),
    Mutant(
        "loop-order-within", REPEATS,
        "if _BRACE in written:", "if not written:",
        "members of an object in a payload in another order are another message",
    ),
    Mutant(
        "loop-no-work", LOOP,
        "        if not event.work:\n            return ()\n", "",
        "notices and answers are said again",
    ),
    Mutant(
        "loop-instances", LOOP,
        "self._agent = base_name(ended.agent)", "self._agent = ended.agent",
        "each instance says things for itself",
    ),
    Mutant(
        "loop-to-instances", LOOP,
        "tuple(map(base_name, record.to))", "record.to",
        "what is said to another instance is something else",
    ),
    Mutant(
        "loop-problems", LOOP,
        "event.sources.ranges if graph.run.session else ()", "()",
        "in a session what is said about all problems is counted together",
    ),
    Mutant(
        "loop-latest", LOOP,
        "before, last = messages.pop(message", "before, last = messages.get(message",
        "a message that is said again is not among the latest",
    ),
    Mutant(
        "loop-remembers", LOOP,
        "del messages[next(iter(messages))]", "messages.popitem()",
        "of too many messages the newest is forgotten",
    ),
    Mutant(
        "loop-error", LOOP,
        "if n >= GRAVE * limit", "if n > GRAVE * limit",
        "four times the limit is no error yet",
    ),
    # -- LIVELOCK ---
    Mutant(
        "livelock-own", LIVELOCK,
        "return from_others[-1] if from_others else", "return",
        "what an agent told itself goes before what others said",
    ),
    Mutant(
        "livelock-first", LIVELOCK,
        "return from_others[-1] if from_others", "return from_others[0] if from_others",
        "the other that spoke first is answered",
    ),
    Mutant(
        "livelock-seen", LIVELOCK,
        "for event in ended.consumed if event.by is not None",
        "for event in ended.inputs if event.by is not None",
        "what was only seen is answered",
    ),
    Mutant(
        "livelock-instances", LIVELOCK,
        "agent = base_name(ended.agent)", "agent = ended.agent",
        "instances go round with each other",
    ),
    Mutant(
        "livelock-no-output", LIVELOCK,
        "not (isinstance(record, End) and record.outputs)", "not isinstance(record, End)",
        "an activation without output hands on",
    ),
    Mutant(
        "livelock-alone", LIVELOCK,
        "if len(agents) < 2", "if not agents",
        "an agent goes round alone",
    ),
    Mutant(
        "livelock-stretch", LIVELOCK,
        "return self.length - (next(iter(self.latest.values())) if len(self.latest) > most else 0)",
        "return self.length",
        "turns before an outsider came in between count too",
    ),
    Mutant(
        "livelock-outsider", LIVELOCK,
        "if len(latest) > most + 1:", "if len(latest) > most:",
        "an outsider is forgotten",
    ),
    Mutant(
        "livelock-again", LIVELOCK,
        " or key in self._raised", "",
        "each of several last turns of one round is raised",
    ),
    Mutant(
        "livelock-error", LIVELOCK,
        "if turns >= GRAVE * limit", "if turns > GRAVE * limit",
        "four times as many turns are no error yet",
    ),
    # -- what is shared ---
    Mutant(
        "repeats-each-time", REPEATS,
        " and times & (times - 1) == 0", "",
        "each multiple of a limit is raised, not only the doublings",
    ),
    Mutant(
        "repeats-names", "graph/records.py",
        r"(?<=.)#[0-9]+\Z", r"(?<=.)#.*\Z",
        "whatever follows a # is the number of an instance",
    ),
    Mutant(
        "repeats-open", REPEATS,
        "for e in events & graph.live.keys() | events & to_come", "for e in events & to_come",
        "what is open is forgotten with what is closed",
    ),
    Mutant(
        "repeats-flat", REPEATS,
        "if len(self._new) > self._most:", "if len(self._new) > self._most**2:",
        "closed events are never forgotten",
    ),
    # -- severity ---
    Mutant(
        "et-needed-lost", ET,
        "is_needed = bool(uncovered)", "is_needed = bool(lost_events)",
        "needed work that is still open makes no error",
    ),
    Mutant(
        "et-no-coverage", ET,
        "on_nothing or not limits.coverage", "on_nothing",
        "in a session without coverage no early answer is an error",
    ),
    Mutant(
        "et-run-no-coverage", ET,
        "[], True", "[], False",
        "in a run without coverage no early answer is an error",
    ),
    Mutant(
        "coverage-consumed", "graph/coverage.py",
        "return sorted(work - behind.consumed)", "return sorted(work)",
        "what the answer used is missing from it",
    ),
    Mutant(
        "coverage-notices", "graph/coverage.py",
        "e for e in history.source_events if history.is_work(e)",
        "e for e in history.source_events",
        "a notice from outside is needed",
    ),
    Mutant(
        "er-no-return", ER,
        "if len({*map(base_name, event.reroutes)}) == n:",
        "if event.reroutes[0] not in event.reroutes[1:]:",
        "only a return to the first agent makes it a warning",
    ),
    Mutant(
        "er-error", ER,
        "if n >= GRAVE * least", "if n >= GRAVE * (least - 1)",
        "the limit is counted, and not the first number above it",
    ),
    Mutant(
        "er-path", ER,
        "event.reroutes[: MOST_EVIDENCE + 1]", "event.reroutes[:MOST_EVIDENCE]",
        "a path that was cut does not say so",
    ),
    Mutant(
        "cla-all-apart", CLA,
        "if any(graph.are_apart", "if all(graph.are_apart",
        "a warning needs all conflicts to be about other problems",
    ),
    Mutant(
        "cla-cut", CLA,
        "islice(first, MOST_EVIDENCE + 1)", "islice(first, MOST_EVIDENCE)",
        "conflicts that were cut do not say so",
    ),
    Mutant(
        "apart-without-problems", "graph/graph.py",
        "bool(a and b) and a", "a",
        "what is about no problem is about another one",
    ),
    Mutant(
        "apart-in-part", "graph/graph.py",
        "a.isdisjoint(b)", "a.ranges != b.ranges",
        "events that have a problem in common are about different ones",
    ),
    Mutant(
        "unanswered-alike", "graph/problems.py",
        "union([problem.sources.common(sources) for problem in self.touching(sources)])",
        "union([problem.sources for problem in self.touching(sources)])",
        "what concerns one of several problems that are alike concerns all of them",
    ),
    Mutant(
        "retention-past", "graph/retention.py",
        "remaining.union(_ONLY_PAST) if len(remaining) < len(sources) else remaining", "remaining",
        "what goes back to evicted problems alone is about no problem",
    ),
    Mutant(
        "filed-as-delivered", "graph/state.py",
        "if not is_next:", "if False:",
        "events of one lineage stand in the order of the buffer",
    ),
    # -- what is usual ---
    Mutant(
        "usual-few-runs", USUAL,
        "LEAST_RUNS = 19", "LEAST_RUNS = 20",
        "nineteen runs tell nothing",
    ),
    Mutant(
        "usual-fewer-runs", USUAL,
        "LEAST_RUNS = 19", "LEAST_RUNS = 1",
        "the first of few runs tells what is usual",
    ),
    Mutant(
        "usual-level", USUAL,
        "20 * (1 + runs) > 1 + usual.runs", "20 * (1 + runs) >= 1 + usual.runs",
        "exactly 5 % is usual",
    ),
    Mutant(
        "usual-beyond", USUAL,
        "counts[j - 1] if j <= len(counts) else 0",
        "counts[min(j, len(counts)) - 1] if counts else 0",
        "beyond its list the last count goes on",
    ),
    Mutant(
        "usual-problems", USUAL,
        "graph.sources_about(subject) if graph.run.session else None", "None",
        "in a session the findings about all problems are counted together",
    ),
    Mutant(
        "usual-patterns", USUAL,
        "self._counts.setdefault(key,", "self._counts.setdefault(\"\",",
        "findings of other patterns count too",
    ),
    # -- what is mended ---
    Mutant(
        "mended-early", MENDED,
        "if pattern not in bad)", ")",
        "an early answer mends an early answer",
    ),
    Mutant(
        "mended-by-warned", MENDED,
        'in BOUNCED and finding.severity == "error" and', "in BOUNCED and",
        "an answer with a warning mends no early answer",
    ),
    Mutant(
        "mended-failed", MENDED,
        "if number >= 0 and not record.error:", "if number >= 0:",
        "a stalled activation that fails is mended",
    ),
    Mutant(
        "mended-in-part", MENDED,
        "self.mended[number] |= not self._unconsumed[number]", "self.mended[number] = True",
        "one of its inputs used elsewhere mends a stalled activation",
    ),
    Mutant(
        "mended-by-notes", MENDED,
        "if record.outputs or any(graph.event(event).work for event in moved):",
        "if record.outputs or any(moved):",
        "who reads a note mends a deadlock",
    ),
    Mutant(
        "mended-late", MENDED,
        'CONSUMED = ("OE", "LATE", "ER")', 'CONSUMED = ("OE", "ER")',
        "what came late is never mended",
    ),
    Mutant(
        "mended-elsewhere", MENDED,
        "if not graph.run.session:\n        return [_RUN]\n", "if True:\n        return [_RUN]\n",
        "in a session what happens about any problem mends",
    ),
    Mutant(
        "unhealed-silenced", MENDED,
        "finding.silenced is None and", "",
        "what a policy silences stays unhealed",
    ),
    # -- the watch ---
    Mutant(
        "bounded-nested", FINDING,
        "len(value) > MOST_EVIDENCE or any(cut for _, cut in items)", "len(value) > MOST_EVIDENCE",
        "a list within a list that was cut does not say so",
    ),
    Mutant(
        "bounded-hundred", FINDING,
        "is_cut = len(value) > MOST_EVIDENCE", "is_cut = len(value) >= MOST_EVIDENCE",
        "a list of a hundred says that there were more",
    ),
    Mutant(
        "watch-unbounded", WATCH,
        "evidence=bound_evidence(finding.evidence)", "evidence=finding.evidence",
        "evidence is not cut",
    ),
    Mutant(
        "watch-untold", WATCH,
        "self._tell_all(lambda detector: detector.on_finding(self.graph, finding), other_parts)",
        "pass",
        "no detector is told of the findings of others",
    ),
    Mutant(
        "watch-incidents-over", WATCH,
        "            if self.graph.is_over:\n                changed &=",
        "            if False:\n                changed &=",
        "an incident after the answer that ends a run raises something",
    ),
    Mutant(
        "watch-all-incidents", WATCH,
        "kinds = CHANGING if detector.kinds is None else detector.kinds",
        "kinds = KINDS if detector.kinds is None else detector.kinds",
        "a detector that names no kinds is shown incidents",
    ),
    Mutant(
        "watch-own-words", WATCH,
        "    if finding.severity not in SEVERITIES:", "    if False:",
        "a detector may say any severity",
    ),
]  # fmt: skip
