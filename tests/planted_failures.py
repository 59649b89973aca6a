"""Further bugs to plant: in failed turns and empty answers, in waiting, and what came with them.

See `planted.py` and `planted_findings.py`, which have those of the other patterns.
"""

from __future__ import annotations

from .planted import ER, ET, IDLE, Mutant
from .planted_findings import LIVELOCK, LOOP, MENDED, REPEATS, STALL, USUAL

FAIL = "detectors/patterns/failed_turn.py"
VOID = "detectors/patterns/no_answer.py"
PROBLEMS = "graph/problems.py"
REWRITES = "graph/rewrites.py"
RULES = "graph/rules.py"

FAILURES = [
    # -- FAIL ---
    Mutant(
        "fail-passed-on", FAIL,
        "if record.because is not None or record.cancelled:", "if record.cancelled:",
        "a turn that passes on an error fails itself",
    ),
    Mutant(
        "fail-cancelled", FAIL,
        "if record.because is not None or record.cancelled:", "if record.because is not None:",
        "a turn that was called off fails",
    ),
    Mutant(
        "fail-whole-error", FAIL,
        '"error": record.error[:MOST_CHARACTERS]', '"error": record.error',
        "of a turn's error all characters are told",
    ),
    Mutant(
        "fail-whole-request", FAIL,
        "error if error is None else error[:MOST_CHARACTERS]", "error",
        "of a request's error all characters are told",
    ),
    Mutant(
        "fail-instances", FAIL,
        "base_name(ended.agent), graph.run.session", "ended.agent, graph.run.session",
        "an instance fails, and does well, for itself",
    ),
    Mutant(
        "fail-own", FAIL,
        "reversed(ends) if agent != own else ()", "reversed(ends)",
        "what the agent that answers failed in counts against its answer",
    ),
    Mutant(
        "fail-forgiven", FAIL,
        "                self._follow(agent, _Latest(sources, None), session)\n",
        "                pass\n",
        "a failure counts although the agent did well after it",
    ),
    Mutant(
        "fail-other-problems", FAIL,
        "if graph.run.session and end.sources.isdisjoint(requests):", "if False:",
        "in a session a failure about another problem counts",
    ),
    Mutant(
        "fail-order", FAIL,
        "        failed.sort(key=lambda failure: failure.t)\n", "",
        "failures stand in the order of the agents",
    ),
    Mutant(
        "fail-by-the-answer", FAIL,
        "self.latest == activation or", "",
        "the activation that answers cannot make anything good",
    ),
    Mutant(
        "fail-by-its-agent", FAIL,
        "not self.makers <= {agent}", "bool(self.makers)",
        "an earlier turn of the agent that answers makes good",
    ),
    Mutant(
        "fail-begun-before", FAIL,
        " and failure.t < start", "",
        "what began before the failure makes it good",
    ),
    Mutant(
        "fail-a-part", FAIL,
        "is_all = all(", "is_all = any(",
        "who does a part of the work makes it good",
    ),
    Mutant(
        "fail-same-words", FAIL,
        "return {*work, *(content for", "return {*work, *(-1 for",
        "work that says the same does not make good",
    ),
    Mutant(
        "fail-notices", FAIL,
        "for e in ended.consumed if e.work}", "for e in ended.consumed}",
        "a notice that says the same makes good",
    ),
    # -- requests that failed ---
    Mutant(
        "request-known", REWRITES,
        " and is_known and is_outside", " and is_outside",
        "a request that names an unknown activation has failed",
    ),
    Mutant(
        "request-outside", REWRITES,
        " and is_known and is_outside", " and is_known",
        "a request that no event from outside made has failed",
    ),
    Mutant(
        "request-how", REWRITES,
        "isinstance(failure, str) and failure in FAILURES", "isinstance(failure, str)",
        "a request may fail in any way",
    ),
    Mutant(
        "request-unnamed", PROBLEMS,
        "(() if sources is None else self.problems_of(sources))",
        "([one for *_, one in self._ranges] if sources is None else self.problems_of(sources))",
        "in a session a failed request without an event ends the looking",
    ),
    # -- VOID ---
    Mutant(
        "void-blanks", VOID,
        "text = record.payload.strip()", "text = record.payload",
        "blanks at the ends of an answer matter",
    ),
    Mutant(
        "void-any-echo", VOID,
        "echoed = [e for e in alike if e in behind.outside]", "echoed = [*alike]",
        "an answer that repeats what somebody else was asked is an echo",
    ),
    Mutant(
        "void-grave-echo", VOID,
        'severity: Severity = "warning" if flaw == "echo" else "error"',
        'severity: Severity = "error"',
        "an echo is an error",
    ),
    Mutant(
        "void-parameters", VOID,
        'CALLS = ({"name", "arguments"}, {"name", "parameters"})',
        'CALLS = ({"name", "arguments"},)',
        "a call with parameters is an answer",
    ),
    Mutant(
        "void-name", VOID,
        ' and isinstance(call["name"], str)', "",
        "a call may be of what has no name",
    ),
    # -- waiting on purpose, and idle windows ---
    Mutant(
        "waits-both", REWRITES,
        "if event is None and isinstance(activation, str)", "if isinstance(activation, str)",
        "an activation waits although an event is named beside it",
    ),
    Mutant(
        "idle-waits", IDLE,
        "            if activation.waits:\n                return None\n", "",
        "an activation that waits on purpose counts no longer than others",
    ),
    Mutant(
        "idle-waited", PROBLEMS,
        "if starts_anew or activation.waits:", "if starts_anew:",
        "the end of an activation that waited on purpose begins no window anew",
    ),
    Mutant(
        "idle-errors", PROBLEMS,
        "has_error or activation.is_progress", "activation.is_progress",
        "an end with an error begins no window anew",
    ),
    Mutant(
        "idle-severity", IDLE,
        '"error" if problem.running.keys() <= self._stalled else "warning"', '"error"',
        "beside an activation that only lasts long a deadlock is an error",
    ),
    Mutant(
        "stall-learns-from-waits", STALL,
        "(record.error or graph.ended.waits)", "record.error",
        "turns that waited on purpose tell a limit",
    ),
    Mutant(
        "stall-team-least", STALL,
        "lengths, least = self._team, self._team_least", "lengths = self._team",
        "a limit by the turns of the team may be below that of activations",
    ),
    # -- the same said again, and going round ---
    Mutant(
        "loop-continuations", REPEATS,
        "if content != CONTINUATION:", "if True:",
        "that an agent goes on later is no difference to one that told itself nothing",
    ),
    Mutant(
        "loop-told-others", REPEATS,
        "return all(base_name(name) == agent for name in record.to)",
        "return any(base_name(name) == agent for name in record.to)",
        "a notice to others, too, is no input",
    ),
    Mutant(
        "loop-work-to-itself", REPEATS,
        "if record.type == NOTICE and _is_continuation", "if _is_continuation",
        "work that an agent gives itself is no input",
    ),
    Mutant(
        "loop-given", REPEATS,
        "if _GIVEN in written and", "if False and",
        "what was given before makes another message",
    ),
    Mutant(
        "loop-given-and-more", REPEATS,
        'payload.keys() == {"$given", "$new"}', 'payload.keys() >= {"$given", "$new"}',
        "what has a new part may have other parts, too, that do not matter",
    ),
    Mutant(
        "loop-twice-in-a-turn", LOOP,
        "        if message in self._counted:\n            return ()\n", "",
        "what one activation says twice counts twice",
    ),
    Mutant(
        "loop-turns-apart", LOOP,
        "            self._counted.clear()\n", "",
        "what was said in a turn before does not count again",
    ),
    Mutant(
        "livelock-grave", LIVELOCK,
        "if turns >= GRAVE * GRAVE * limit:", "if turns >= GRAVE * limit:",
        "to go round is an error from four times the limit on",
    ),
    Mutant(
        "livelock-begins", LIVELOCK,
        '"warning" if turns >= GRAVE * limit else "notice"', '"warning"',
        "to go round is a warning from the limit on",
    ),
    # -- what findings are worth ---
    Mutant(
        "et-on-nothing", ET,
        "bool(uncovered) or on_nothing or", "bool(uncovered) or",
        "an answer that was made of nothing is a warning",
    ),
    Mutant(
        "er-instances", ER,
        "{*map(base_name, event.reroutes)}", "{*event.reroutes}",
        "an instance of an agent is another agent that reroutes",
    ),
    Mutant(
        "usual-stages", USUAL,
        'return finding.pattern if finding.stage is None else f"{finding.pattern} {finding.stage}"',
        "return finding.pattern",
        "the stages of a pattern are usual together",
    ),
    Mutant(
        "usual-types", USUAL,
        "return f\"ET {','.join(sorted(types))}\"", 'return "ET"',
        "an early answer is usual whatever it leaves behind",
    ),
    Mutant(
        "usual-requests", USUAL,
        "    if key == NEVER:\n        return False\n", "",
        "that requests fail may be usual",
    ),
    Mutant(
        "usual-sets", USUAL,
        "add_one(counts, sources or NOTHING)", "add_one(counts, NOTHING)",
        "in a session what goes back to other problems is counted together",
    ),
    Mutant(
        "mended-requests", MENDED,
        "            self._settle((NEVER,), requests)\n", "",
        "a request that failed is mended by no answer",
    ),
    Mutant(
        "mended-request-aims", MENDED,
        "            self._settle((NEVER,), requests)\n",
        "            self._settle((NEVER,), aims)\n",
        "a request that failed is mended by none that comes after another answer",
    ),
    Mutant(
        "mended-void", MENDED,
        'BOUNCED = ("ET", "VOID")', 'BOUNCED = ("ET",)',
        "an empty answer is never mended",
    ),
    Mutant(
        "mended-by-memory", MENDED,
        "return list(graph.asked_problems(final)),", 'return _sources(graph, {"event": final}),',
        "an answer mends what it goes back to without memory only",
    ),
    # -- the rules of the file ---
    Mutant(
        "because-of-itself", RULES,
        "if h.agent(v) == agent:", "if False:",
        "a turn may pass on an error of its own agent",
    ),
    Mutant(
        "because-of-any", RULES,
        "if v is None or not h.failed[v]:", "if v is None:",
        "a turn may pass on the error of one that did not fail",
    ),
]  # fmt: skip
