"""Bugs to plant in dig, each of which the suite must notice (`make mutants`).

A text must stand exactly once in its file. Where a change of dig moves it, fit the entry to the
new code; take one out only if what it breaks cannot be broken any more, and say so in the commit.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A bug: where `text` stands in a file below dig/, `new` stands instead.

    With an engine, random schedules on it must notice the bug; without one, the suite must.
    """

    name: str
    file: str
    text: str
    new: str
    breaks: str
    engine: str = ""


DECIDING = "diagnosis/stages/deciding.py"
CLA = "detectors/patterns/cross_lineage.py"
DL = "detectors/patterns/deadlock.py"
ER = "detectors/patterns/excessive_rerouting.py"
ET = "detectors/patterns/early_termination.py"
IDLE = "detectors/patterns/idle.py"
MC = "detectors/patterns/missing_termination.py"
OE = "detectors/patterns/orphaned_event.py"
EVENT_WINDOW = "detectors/patterns/event_window.py"
RSP = "detectors/patterns/repeated_solving.py"
HEALING = "monitor/healing.py"
LADDERS = "monitor/ladders.py"

MUTANTS = [
    # -- notes ---
    Mutant(
        "note-of-another-request", "monitor/relevance.py",
        'return "later" if concerned and open_sources.isdisjoint(concerned) else "now"',
        'return "now"',
        "a note about one request is shown in turns that work for another",
    ),
    Mutant(
        "note-mended", "monitor/relevance.py",
        "if self._mending.mended[self._number]:", "if False:",
        "a note about what is mended is shown all the same",
    ),
    Mutant(
        "note-to-a-tool", "detectors/notes.py",
        "if state.type != TOOL_CALL:", "if True:",
        "a note about a call of a tool is given to the tool",
    ),
    # -- CLA ---
    Mutant(
        "cla-no-lineage", CLA,
        "if not event.roots:", "if event.roots is None:",
        "what has no lineage is compared at delivery",
    ),
    Mutant(
        "cla-no-lineage-consumed", CLA,
        "        if event.roots:\n            alike",
        "        if event.roots is not None:\n            alike",
        "what has no lineage is compared at consumption",
    ),
    Mutant(
        "cla-different-roots", CLA,
        "and _first(alike).roots.isdisjoint(event.roots)", "and _first(alike).roots != event.roots",
        "lineages that differ count as disjoint",
    ),
    Mutant(
        "cla-three-inputs", "graph/rewrites.py",
        "if len(inputs) > 1:", "if len(inputs) > 2:",
        "two inputs are too few to be looked at",
    ),
    Mutant(
        "cla-one-of-a-kind", CLA,
        "for b in alike[other] if b > n", "for b in alike[other][:1] if b > n",
        "of inputs with the same roots only one is compared",
    ),
    Mutant(
        "cla-neighbours", CLA,
        "[other for other in alike if roots.isdisjoint(other)] for roots",
        "[other for other in alike if roots.isdisjoint(other)][:1] for roots",
        "a lineage is compared with one other only",
    ),
    Mutant(
        "cla-order-delivered", CLA,
        "merge(*(alike.values() for alike in strange), key=by_number)",
        "(other for alike in strange for other in alike.values())",
        "conflicts stand by lineage, in the order of the buffer",
    ),
    Mutant(
        "cla-order-consumed", CLA,
        "events = sorted(", "events = list(",
        "pairs stand by lineage, in the order of the buffer",
    ),
    Mutant(
        "cla-order-in-pair", CLA,
        "if b > n)", "if b < n)",
        "in a pair the event stands first that was generated last",
    ),
    # -- DL and MC ---
    Mutant(
        "dl-in-flight", "graph/problems.py",
        "0 if problem.flying or problem.is_over or", "0 if problem.is_over or",
        "work on its way does not prevent a deadlock",
    ),
    Mutant(
        "dl-order", DL,
        "sorted(problem.open.values(), key=by_number)", "problem.open.values()",
        "waiting events stand in the order in which they came to be open",
    ),
    Mutant(
        "dl-idle-agents", DL,
        "for agent, events in waiting.items() if events}", "for agent, events in waiting.items()}",
        "agents that hold nothing are listed too",
    ),
    Mutant(
        "mc-answer-under-way", "graph/problems.py",
        "problem.open or problem.submitted or", "problem.open or",
        "an answer that is under way is not waited for",
    ),
    Mutant(
        "mc-last", MC,
        '{"last": problem.last}', '{"last": None}',
        "the activation that ended last is not told",
    ),
    Mutant(
        "mc-no-problem", "graph/problems.py",
        "DONE if problem.is_posed else 0", "DONE",
        "a run without a problem misses its end",
    ),
    Mutant(
        "mc-open-work", "graph/problems.py",
        "problem.open or problem.submitted or", "problem.submitted or",
        "open work does not prevent it",
    ),
    # -- idle windows ---
    Mutant(
        "idle-progress", "graph/problems.py",
        "self.cut_off(activation, now, has_error or activation.is_progress)",
        "self.cut_off(activation, now, has_error)",
        "progress does not start an interval over",
    ),
    Mutant(
        "idle-no-alarm", IDLE,
        "due is not None and (interval.alarm is None or due < interval.alarm)",
        "due is not None and interval.alarm is None",
        "an alarm is not set anew where it comes due earlier",
    ),
    Mutant(
        "idle-early", IDLE,
        "            if due == moment:\n", "            if due is not None and due >= moment:\n",
        "an alarm goes off although its time has moved on",
    ),
    Mutant(
        "idle-oldest", IDLE,
        "for activation in problem.running.values():",
        "for activation in [*problem.running.values()][:1]:",
        "only the activation that began first is waited for",
    ),
    Mutant(
        "idle-no-limit", IDLE,
        "activation.us_start + self._limit)", "activation.us_start)",
        "an activation in progress holds nothing back",
    ),
    Mutant(
        "idle-again", IDLE,
        "                interval.raised = start\n", "",
        "what an end raises is raised again in the same interval",
    ),
    Mutant(
        "idle-answered", "graph/problems.py",
        "problem.submitted or problem.is_over", "problem.submitted",
        "a problem that was answered is still looked at",
    ),
    Mutant(
        "idle-parted-raised", IDLE,
        "other.raised, other.restarted = self.raised, self.restarted",
        "other.restarted = self.restarted",
        "what was raised is raised again about a problem that is parted from others",
    ),
    Mutant(
        "idle-at-the-end", IDLE,
        "due is not None and due <= us:", "due is not None and due < us:",
        "what is due exactly at the end that makes it possible waits for the next record",
    ),
    Mutant(
        "idle-alarm-used-up", IDLE,
        "interval.raised, interval.alarm = interval.start(problem), None",
        "interval.raised = interval.start(problem)",
        "an alarm that went off is never set again",
    ),
    Mutant(
        "idle-alarm-dropped", IDLE,
        "                interval.alarm = None\n                self._set",
        "                self._set",
        "an alarm that came up in vain is never set again",
    ),
    Mutant(
        "idle-once", IDLE,
        "is_raised = interval.raised == interval.start(problem)",
        "is_raised = interval.raised is not None",
        "a problem is raised once, however many intervals it has",
    ),
    # -- OE ---
    Mutant(
        "oe-once", EVENT_WINDOW,
        "if self._raised.get(event.id) != since:", "if event.id not in self._raised:",
        "an event that is orphaned again is not raised again",
    ),
    Mutant(
        "oe-again", EVENT_WINDOW,
        "if self._raised.get(event.id) != since:", "if since:",
        "an orphan is raised again whenever it is touched",
    ),
    Mutant(
        "oe-unbroken", EVENT_WINDOW,
        "            if self._since(event) == since:\n                self.due",
        "            if since >= 0:\n                self.due",
        "an interval is not broken by a new recipient",
    ),
    Mutant(
        "oe-old-alarm", EVENT_WINDOW,
        "if self._queue[event.id][1] == since:", "if since >= 0:",
        "an interval that begins anew is taken for the one before",
    ),
    Mutant(
        "oe-rearmed", EVENT_WINDOW,
        "                if self._queue[event.id][1] == since:\n                    continue\n", "",
        "whatever touches an orphan starts its interval over",
    ),
    Mutant(
        "oe-order", EVENT_WINDOW,
        "sorted(ready, key=by_number)", "ready",
        "orphans of one moment stand in the order of their loss",
    ),
    Mutant(
        "oe-window", OE,
        'window = "oe_window_s"', 'window = "dl_window_s"',
        "the window of another pattern is used",
    ),
    # -- ER ---
    Mutant(
        "er-limit", ER,
        "least = graph.run.limits.reroute_limit + 1", "least = graph.run.limits.reroute_limit",
        "one reroute fewer is too many",
    ),
    Mutant(
        "er-no-work", ER,
        "if event.work and is_doubling", "if is_doubling",
        "notices, notes and answers count",
    ),
    Mutant(
        "er-order", ER,
        "in sorted(rerouted, key=by_number)", "in rerouted",
        "events stand in the order in which the decision names them",
    ),
    # -- ET and coverage ---
    Mutant(
        "et-uncovered", ET,
        "if unresolved or uncovered:", "if unresolved:",
        "work that was lost is no reason by itself",
    ),
    Mutant(
        "et-other-problems", ET,
        "open_events = sorted(graph.problems.open_events(requests).values(), key=by_number)",
        "open_events = graph.open_events()",
        "in a session open work on other problems counts too",
    ),
    Mutant(
        "et-order", ET,
        "sorted(graph.problems.open_events(requests).values(), key=by_number)",
        "list(graph.problems.open_events(requests).values())",
        "in a session open work stands in the order of the problems",
    ),
    Mutant(
        "et-coverage-off", ET,
        " if limits.coverage else []", "",
        "coverage is looked at although it is off",
    ),
    Mutant(
        "answer-note-alone", "graph/coverage.py",
        "counts_memory = state.run.memory or not history.inputs(v)",
        "counts_memory = state.run.memory",
        "an answer on a note alone rests on nothing",
    ),
    Mutant(
        "coverage-any-output", "graph/lineage.py",
        "if 0 < len(inputs) < history.output_count[v]:", "if 0 < len(inputs):",
        "the outputs of activations that split nothing are needed",
    ),
    Mutant(
        "coverage-no-work", "graph/lineage.py",
        "if history.is_work(e) and e not in self.consumed", "if e not in self.consumed",
        "notices among the parts are needed",
    ),
    Mutant(
        "coverage-open", ET,
        " if not graph.is_open(e)]", "]",
        "open work is listed as lost too",
    ),
    Mutant(
        "coverage-used", "graph/lineage.py",
        "self.parts.discard(e)", "pass",
        "a part that was used by one activation and made by an earlier known one is lost",
    ),
    Mutant(
        "coverage-other-problems", "graph/coverage.py",
        "sorted(e for e in work if not state.sources_of(e).isdisjoint(sources))", "sorted(work)",
        "in a session lost work on other problems counts too",
    ),
    Mutant(
        "answer-settled", "graph/coverage.py",
        "if w in behind.activations or history.settled[w]:", "if w in behind.activations:",
        "what is settled stands behind a later answer too",
    ),
    Mutant(
        "answer-of-another", "graph/coverage.py",
        "return behind.counts_memory and agents[0] == agents[1]", "return True",
        "what one agent remembers stands behind the answer of another",
    ),
    Mutant(
        "answer-taken-over", "graph/lineage.py",
        "        self.parts -= self.consumed\n", "",
        "a part that a later answer uses stays lost",
    ),
    # -- sets of roots and sources ---
    Mutant(
        "ranges-meet", "_util/ranges.py",
        "if a[i + 1] <= b[j]:", "if a[i + 1] < b[j]:",
        "ranges that only meet overlap",
    ),
    Mutant(
        "ranges-inside", "_util/ranges.py",
        "merged[-1] = max(merged[-1], end)", "merged[-1] = end",
        "a range inside another cuts it off",
    ),
    Mutant(
        "ranges-canonical", "_util/ranges.py",
        "if merged and start <= merged[-1]:", "if merged and start < merged[-1]:",
        "ranges that meet stay apart, so that equal sets differ",
    ),
    Mutant(
        "minus-empty", "_util/ranges.py",
        "                if start < other.ranges[k]:",
        "                if start <= other.ranges[k]:",
        "a difference has empty ranges",
    ),
    Mutant(
        "union-dropped", "_util/ranges.py",
        "result = result.union(numbers)", "result = numbers",
        "a union is its last set",
    ),
    # -- problems ---
    Mutant(
        "asked-answered", "graph/problems.py",
        "for source in own if not self._answered[source])", "for source in own)",
        "what was answered is asked again",
    ),
    Mutant(
        "settled-not", "graph/problems.py",
        "self._history.settled[v] = 1", "pass",
        "nothing is ever settled",
    ),
    Mutant(
        "bounced-pending", "graph/problems.py",
        "problem.submitted.pop(event.id, None)", "pass",
        "an answer that was bounced or accepted stays under way",
    ),
    Mutant(
        "parted-marks", "graph/state.py",
        "        other.marks = {detector: copy(mark) for detector, mark in self.marks.items()}\n",
        "",
        "a problem that is parted from others begins its windows anew",
    ),
    Mutant(
        "parted-untouched", "graph/problems.py",
        "                self._enter(other)\n                self.touched[other] = None\n",
        "                self._enter(other)\n",
        "a problem that is parted from others is not looked at",
    ),
    Mutant(
        "parted-not", "graph/problems.py",
        "            if remainder.ranges:\n", "            if False:\n",
        "what concerns one of several problems concerns all that were like it",
    ),
    Mutant(
        "merged-unlike", "graph/problems.py",
        "if other.is_like(problem)), None)", "if True), None)",
        "problems that an activation concerns become one, like or not",
    ),
    Mutant(
        "merged-other-running", "graph/state.py",
        "            and self.running.keys() == other.running.keys()\n", "",
        "problems are alike on which different activations are at work",
    ),
    Mutant(
        "merged-other-submitted", "graph/state.py",
        "            and self.submitted.keys() == other.submitted.keys()\n", "",
        "problems are alike that have different answers under way",
    ),
    Mutant(
        "merged-other-open", "graph/state.py",
        "            and self.open.keys() == other.open.keys()\n", "",
        "problems are alike that have different open work",
    ),
    Mutant(
        "merged-without-progress", "graph/problems.py",
        "if activation.is_progress and len(activation.problems) > 1:",
        "if len(activation.problems) > 1:",
        "problems become one although their windows began at different times",
    ),
    Mutant(
        "merged-twice", "graph/problems.py",
        "            problem.is_over = True\n            for member in",
        "            for member in",
        "a problem that became part of another is still looked at",
    ),
    Mutant(
        "notice-poses", "graph/problems.py",
        "problem.is_posed |= is_work", "problem.is_posed = True",
        "a notice from outside is a problem",
    ),
    Mutant(
        "notice-poses-in-session", "graph/problems.py",
        "problem = Problem(sources, is_work)", "problem = Problem(sources, True)",
        "in a session a notice from outside is a problem",
    ),
    # -- rewrites ---
    Mutant(
        "roots-of-first", "graph/rewrites.py",
        "roots = union([event.roots for event in inputs])",
        "roots = union([event.roots for event in inputs[:1]])",
        "an activation inherits the roots of its first input only",
    ),
    Mutant(
        "roots-always-new", "graph/rewrites.py",
        "if inputs and not roots.ranges:", "if inputs:",
        "every activation is a root",
    ),
    Mutant(
        "roots-of-nothing", "graph/rewrites.py",
        "if inputs and not roots.ranges:", "if not roots.ranges:",
        "an activation without inputs is a root",
    ),
    Mutant(
        "sources-of-first", "graph/rewrites.py",
        "(roots, union([event.sources for event in inputs]))",
        "(roots, union([event.sources for event in inputs[:1]]))",
        "an output concerns what the first input concerns",
    ),
    Mutant(
        "sources-of-notices", "graph/rewrites.py",
        "(roots, union([event.sources for event in inputs]))",
        "(roots, union([event.sources for event in inputs if event.work]))",
        "what a notice concerns is forgotten",
    ),
    Mutant(
        "notes-are-inputs", "graph/rewrites.py",
        'if fate.fate == "consume" and event.by != SYSTEM', 'if fate.fate == "consume"',
        "a note counts as an input",
    ),
    Mutant(
        "cause-not-kept", "graph/rewrites.py",
        "elif cause_before is None:\n            event.cause = cause",
        "else:\n            event.cause = cause or event.cause",
        "an orphan takes the cause of the latest record",
    ),
    Mutant(
        "sent-to-holders", "graph/rewrites.py",
        "if agent is not None and name not in event.copies:", "if agent is not None:",
        "an event is on its way to those who hold it",
    ),
    Mutant(
        "ghosts-in-flight", "graph/rewrites.py",
        "        event.flight.pop(agent.name, None)\n", "",
        "what was on its way to an agent that left is still on its way",
    ),
    Mutant(
        "redirect-adds", "graph/rewrites.py",
        "    _land(state, event)\n    _send(state, event, record.to)",
        "    _send(state, event, record.to)",
        "a redirect adds recipients instead of replacing them",
    ),
    Mutant(
        "expired-as-unsent", "graph/rewrites.py",
        '_place(state, event, "expired")', '_place(state, event, "no_recipient")',
        "what has expired is told to have had no recipient",
    ),
    Mutant(
        "reroutes-of-consumed", "graph/rewrites.py",
        "        event.reroutes = []\n", "",
        "reroutes of what was consumed elsewhere are still counted",
    ),
    Mutant(
        "revived-no-roots", "graph/state.py",
        "self.roots = roots_of(self._history, self.n)",
        "self.roots = RangeSet()",
        "an event that is named again after it was closed has no roots",
    ),
    Mutant(
        "revived-no-sources", "graph/state.py",
        "self.sources = sources_of(self._history, self.n)",
        "self.sources = RangeSet()",
        "an event that is named again after it was closed concerns nothing",
    ),
    Mutant(
        "cut-off-is-an-end", "graph/rewrites.py",
        "state.problems.cut_off(state.running.pop(agent.activation.id), record.us)",
        "state.problems.end(state.running.pop(agent.activation.id), record.us, False)",
        "an activation that a leave cuts off counts as one that ended",
    ),
    Mutant(
        "note-read", "graph/rewrites.py",
        "activation.is_progress = True", "activation.is_progress |= event.id in named",
        "to read a note by default is no progress",
    ),
    Mutant(
        "output-alone", "graph/rewrites.py",
        "    activation.is_progress |= bool(record.outputs)\n", "",
        "an output alone is no progress",
    ),
    # -- history ---
    Mutant(
        "splits-into-as-many", "graph/lineage.py",
        "if 0 < len(inputs) < history.output_count[v]:",
        "if 0 < len(inputs) <= history.output_count[v]:",
        "an activation with as many outputs as inputs splits",
    ),
    Mutant(
        "splits-nothing", "graph/lineage.py",
        "if 0 < len(inputs) < history.output_count[v]:",
        "if len(inputs) < history.output_count[v]:",
        "an activation without inputs splits",
    ),
    Mutant(
        "remembers-the-future", "graph/history.py",
        "return [w for w in ended if w < v]", "return ended",
        "what an agent did after its answer stands behind it when it is accepted",
    ),
    Mutant(
        "notes-are-work", "graph/history.py",
        "return self.generator[n] != BY_SYSTEM and not", "return not",
        "a note is work",
    ),
    Mutant(
        "notes-behind-answers", "graph/history.py",
        "if fate == CONSUME and generator[e] != BY_SYSTEM]", "if fate == CONSUME]",
        "an activation on a note alone has an input",
    ),
    # -- RSP ---
    Mutant(
        "rsp-as-many", "graph/rewrites.py",
        "outputs <= len(inputs)", "outputs < len(inputs)",
        "an activation with as many outputs as inputs does not reduce",
    ),
    Mutant(
        "rsp-no-output", "graph/rewrites.py",
        "if 0 < outputs <=", "if 0 <= outputs <=",
        "an activation without an output repeats something",
    ),
    Mutant(
        "rsp-first-only", RSP,
        "for w in earlier[: MOST_EVIDENCE + 1]]", "for w in earlier[:1]]",
        "only the first that solved it is named",
    ),
    Mutant(
        "rsp-order", RSP,
        "in sorted(event.n for event in graph.ended.consumed):",
        "in [event.n for event in graph.ended.consumed]:",
        "events stand in the order of the buffer",
    ),
    Mutant(
        "rsp-forgets", "graph/history.py",
        "self.further_solvers.setdefault(n, []).append(v)",
        "self.further_solvers.setdefault(n, [v])",
        "who repeats something is not remembered as one that solved it",
    ),
    # -- watch ---
    Mutant(
        "watch-deadline", "detectors/watch.py",
        "if due is None or due > us:", "if due is None or due >= us:",
        "a record that stands exactly at a deadline comes before it",
    ),
    Mutant(
        "watch-over", "detectors/watch.py",
        "if self.graph.is_over:\n            self.not_before",
        "if self.graph.finished:\n            self.not_before",
        "windows are looked at after the answer that ends a run",
    ),
    Mutant(
        "watch-latest", "detectors/watch.py",
        "self.not_before is None or due < self.not_before)",
        "self.not_before is None or due > self.not_before)",
        "the latest deadline is waited for instead of the earliest",
    ),
    Mutant(
        "watch-late", "detectors/watch.py",
        "findings = self.advance(record.us)\n        self.graph.apply(record)\n"
        "        return findings",
        "self.graph.apply(record)\n        return self.advance(record.us)",
        "what was due before a record is raised after it",
    ),
    # -- retention ---
    Mutant(
        "retention-waiting", "graph/retention.py",
        " or not sources.isdisjoint(waiting)\n", "\n",
        "what goes back to an event that is not answered yet is gone",
    ),
    Mutant(
        "retention-submitters", "graph/retention.py",
        "event.final or not event.consumed]", "not event.final and not event.consumed]",
        "what the submitter of a bounced answer consumed is gone",
    ),
    Mutant(
        "retention-solvers", "graph/retention.py",
        "self.keep_rows(solvers)", "self.keep_rows(solvers[:1])",
        "of those who solved what is still there, only the first is known",
    ),
    Mutant(
        "retention-lost-too-soon", "graph/retention.py",
        "event.us_lost + window <= state.now", "event.us_lost <= state.now",
        "what was lost is gone before its window has passed",
    ),
    Mutant(
        "retention-still-known", "graph/retention.py",
        "        state.history.flags[n] |= EVICTED", "        pass",
        "what a session has let go of can be named for as long as it is shown",
    ),
    Mutant(
        "retention-given-up-too-soon", "graph/state.py",
        "return not self.concerning() and not any(", "return not self.concerning() or any(",
        "a problem is given up before it is said that nobody submits an answer",
    ),
    Mutant(
        "retention-cut-roots", "graph/lineage.py",
        "return union([own, *(history.cut[v][0] for v in behind if v in history.cut)])",
        "return own",
        "an event that is named again has only the roots that are not cut off",
    ),
    Mutant(
        "retention-cut-sources", "graph/lineage.py",
        "return union([own, *(history.cut[v][1] for v in behind if v in history.cut)])",
        "return own",
        "an event that is named again has only the sources that are not cut off",
    ),
    # -- the monitor ---
    Mutant(
        "monitor-answers-of-the-gone", "monitor/schedule.py",
        "for event in answers:", "for event in ():",
        "an answer on its way back to an agent that leaves is lost",
    ),
    # -- ladders ---
    Mutant(
        "ladder-at-once", LADDERS,
        "ladder.due = now + self.patience", "ladder.due = now + 1",
        "a step has no time to help",
    ),
    Mutant(
        "ladder-patience-fixed", LADDERS,
        "return max(least, PATIENCE * self._lengths.percentile)", "return least",
        "a team of slow turns gets no more time than one of fast turns",
    ),
    Mutant(
        "ladder-never-due", "monitor/monitor.py",
        "            due.append(self._healing.ladders.deadline())\n", "            pass\n",
        "a step that is due waits for something else to happen",
    ),
    Mutant(
        "ladder-without-end", HEALING,
        "if ladder.steps < self._budget.per_subject:\n                t = ",
        "if True:\n                t = ",
        "a ladder at its end says the same for ever",
    ),
    Mutant(
        "ladder-budget-of-a-problem", HEALING,
        'self._spent["problem"] += is_more', "pass",
        "work is given away without end",
    ),
    Mutant(
        "ladder-not-refused", HEALING,
        "if action in self._policy.refuse:", "if False:",
        "a policy cannot refuse a step",
    ),
    Mutant(
        "ladder-problem-gone", HEALING,
        "if ladder or any(healer.repeats_problems", "if any(healer.repeats_problems",
        "a problem cannot begin anew, since what it carried is forgotten",
    ),
    Mutant(
        "ladder-replaced-untold", HEALING,
        "        self._recorder.incident(REPLACED, detail)\n", "",
        "nothing says why an agent was taken out",
    ),
    Mutant(
        "ladder-late-output-untold", "runtime/host.py",
        "return self.monitor.incident(LATE_OUTPUT, detail)", "return []",
        "what an agent says after it was taken out is silent",
    ),
    Mutant(
        "ladder-dl-same-note", "detectors/patterns/deadlock.py",
        "elif step.number == 2:", "elif False:",
        "what waits in a deadlock is not given away",
    ),
    Mutant(
        "ladder-dl-no-restart", "detectors/patterns/deadlock.py",
        "yield from restart(graph, finding, step, tuple(waiting))", "yield from ()",
        "a deadlock that goes on does not begin anew",
    ),
    Mutant(
        "ladder-mc-same-agent", MC,
        "yield Create(note, (helper,), without=without)", "yield Create(note, without)",
        "the same agent is asked again to submit",
    ),
    Mutant(
        "ladder-stall-stays", "detectors/patterns/stalled_activation.py",
        "if step.number > 1:", "if False:",
        "an agent that stays stalled is not taken out",
    ),
    Mutant(
        "ladder-oe-told-alone", OE,
        "yield Reroute(event.id, note, (helper or \"\",), action=\"redeliver\")",
        "yield from self.heal(graph, finding)",
        "lost work whose generator has left is told of, and not given to anyone",
    ),
    Mutant(
        "ladder-er-inside", "detectors/patterns/excessive_rerouting.py",
        "helper = step.helper(graph, most if is_closed else path)", "helper = path[0]",
        "a ping-pong goes on among the same agents",
    ),
    Mutant(
        "ladder-et-not-handed-out", "detectors/patterns/early_termination.py",
        'is_over |= finding.severity != "error"', "is_over = True",
        "an answer is accepted before what it lacks was handed out again",
    ),
    Mutant(
        "ladder-failed-waited-for", "detectors/patterns/deadlock.py",
        'if step.troubles.get(agent) == "failed"]', "if False]",
        "what a failed agent holds waits for a second step",
    ),
    Mutant(
        "ladder-failed-asked", MC,
        "if step.number == 1 and not has_failed:", "if step.number == 1:",
        "an agent that has failed is the first to be asked for the answer",
    ),
    Mutant(
        "ladder-swallowers-trusted", "detectors/ladder.py",
        'if trouble == "swallowed"]', "if False]",
        "a problem that begins anew is handed out to agents that swallow work",
    ),
    Mutant(
        "ladder-hanging-helper", "detectors/ladder.py",
        "agent not in without and not hangs(agent)]", "agent not in without]",
        "work is given to an agent that hangs",
    ),
    Mutant(
        "ladder-ends-with-other-answers", LADDERS,
        "return not sources or bool(graph.unanswered_sources(sources, 1))", "return False",
        "the answer to one problem ends the steps about another",
    ),
    Mutant(
        "ladder-silent-step", HEALING,
        "self.refuse(ladder.row, NOTHING_TO_DO)", "pass",
        "a step that has nothing to do leaves no trace, so a replay takes the next one later",
    ),
    Mutant(
        "ladder-not-anew", LADDERS,
        "if ladder is None or (ladder.began_anew and ladder.about != about):", "if ladder is None:",
        "a problem that began anew has no steps left",
    ),
    # -- forks ---
    Mutant(
        "fork-phase-forgotten", "runtime/driver/rewind_state.py",
        "past.append(PastActivation(view, None, by=by, repeats=phase.repeats))",
        "past.append(PastActivation(view, None, by=by))",
        "the faults of a fork of a repeat believe that they acted by other random numbers",
    ),
    Mutant(
        "fork-latency-not-repeated", "runtime/simulator.py",
        "latency_s = self._latency(effect.agent, self._repeats)",
        "latency_s = self._latency(effect.agent, ())",
        "a repeat starts agents as soon as the run did",
    ),
    Mutant(
        "fork-asked-again-knows", "runtime/driver/rewind_state.py",
        "                    self._past[item.started.agent].pop()\n", "",
        "an agent that is asked again remembers the activation already",
    ),
    Mutant(
        "fork-fault-forgets", "runtime/checkpoint.py",
        "            agent.restore(sorted(past, key=lambda activation: activation.view.time_s))",
        "            pass",
        "a fault that may act once acts once more after a fork",
    ),
    Mutant(
        "replay-policy-too-soon", "monitor/schedule.py",
        "if not (us < now or (us == now and self._graph.t + 1 >= t)):",
        "if not us <= now:",
        "a policy acts again before what else happened at its moment",
    ),
    # -- deciding about conversations ---
    Mutant(
        "deciding-levels-forgotten", DECIDING,
        "return tuple(in_agents or in_subtasks or steps)",
        "return tuple(steps)",
        "a step that deviates is a candidate though neither its agent nor its subtask does",
    ),
    Mutant(
        "deciding-upstream-later", DECIDING,
        "upstream = [n for n in screened.upstream if n < step and self._can_be_blamed(n)]",
        "upstream = [n for n in screened.upstream if self._can_be_blamed(n)]",
        "a later step explains an earlier one",
    ),
    Mutant(
        "deciding-loop-invented", DECIDING,
        'if loop is None:\n            self.notes',
        'if loop is None and responsible == "none":\n            self.notes',
        "a loop that the texts do not show raises an error",
    ),
    Mutant(
        "deciding-roles-swapped", DECIDING,
        'loop.repetition if responsible == "planner" else loop.failure',
        'loop.failure if responsible == "planner" else loop.repetition',
        "the planner's loop is blamed on the worker",
    ),
    Mutant(
        "deciding-spoilt-later", DECIDING,
        "if spoilt_at > step or not self._can_be_blamed(spoilt_at):",
        "if not self._can_be_blamed(spoilt_at):",
        "data are said to be spoilt by a later step",
    ),
    Mutant(
        "deciding-own-status-lost", DECIDING,
        "if origin not in self.testimony.screened or origin not in self.candidates:",
        "if True:",
        "a step that is explained itself becomes an origin, because a later one goes back to it",
    ),
    Mutant(
        "deciding-recovered-by-candidate", DECIDING,
        "if not is_step or later in self.statuses:",
        "if not is_step:",
        "a step that deviates itself puts another right",
    ),
    Mutant(
        "deciding-recovered-in-vain", DECIDING,
        "if self.graph.subtask_of(later).id not in self.testimony.deviations.subtasks:",
        "if later:",
        "a step is put right in a subtask that deviates",
    ),
    Mutant(
        "deciding-verdict-first", DECIDING,
        "if verdict is not None and verdict[1] in origins:",
        "if verdict is not None and verdict[1] in statuses:",
        "the model's verdict wins although the testimony explains it away",
    ),
    Mutant(
        "deciding-last-origin", DECIDING,
        'first = [*origins, *by_status.get("open", [])]',
        'first = [*reversed(origins), *by_status.get("open", [])]',
        "the last of several origins is answered",
    ),
]  # fmt: skip
