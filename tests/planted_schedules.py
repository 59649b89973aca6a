"""Bugs to plant in what holds, heals, delivers and drives; random schedules must notice each.

`make mutants` tries each on 1,000 schedules of an engine: the simulator, or the bus (`shell`). For
wrapped teams the schedules are those of their tests, which draw teams and where to cancel them.
As for `planted`: where a change of dig moves a text, fit the entry to the new code.
"""

from __future__ import annotations

from .planted import Mutant

BUS = "runtime/bus.py"
GATES = "monitor/gates.py"
HEALING = "monitor/healing.py"
HOLDS = "monitor/holds.py"
HOST = "runtime/host.py"
JOURNAL = "traces/journal/journal.py"
MONITOR = "monitor/monitor.py"
PAYLOADS = "monitor/payloads.py"
RECORDER = "monitor/recorder.py"
SCHEDULE = "monitor/schedule.py"
SIMULATION = "runtime/simulator.py"
WATCH = "detectors/watch.py"

SIMULATOR = "simulator"
SHELL = "shell"
WRAPPED = "wrapped"

SCHEDULED = [
    # -- the monitor ---
    Mutant(
        "monitor-reroute-lost", MONITOR,
        "            self._holds.hold(*rerouted)\n", "            pass\n",
        "a rerouted event never arrives", SIMULATOR,
    ),
    Mutant(
        "monitor-not-again", HOLDS,
        "if buffer and (agent in self._arrived or 0 < remaining < len(inputs)):", "if False:",
        "an agent is not started again for what came while it worked", SIMULATOR,
    ),
    Mutant(
        "monitor-ready-for-ever", HOLDS,
        "        self.ready.pop(agent, None)\n        self._arrived", "        self._arrived",
        "an agent that was started once is not woken again", SIMULATOR,
    ),
    Mutant(
        "monitor-arrived-for-ever", HOLDS,
        "        self._arrived.pop(agent, None)\n", "",
        "what an agent has seen counts as new at its end", SIMULATOR,
    ),
    Mutant(
        "monitor-settles-once", MONITOR,
        "            if not (recorder.new_findings or holds.held):\n                break",
        "            break",
        "what healing brings about is not released in the same call", SIMULATOR,
    ),
    Mutant(
        "monitor-clock-unread", MONITOR,
        "        self._recorder.look_at_clock()\n        self._healing.poll()\n",
        "        self._healing.poll()\n",
        "nothing is due before a request", SIMULATOR,
    ),
    Mutant(
        "policies-nothing-planned", SCHEDULE,
        "        self._plan(name, step)\n", "",
        "what is left over of a delivery policy is forgotten at once", SIMULATOR,
    ),
    # -- sweeping ---
    Mutant(
        "sweeping-pins-nothing", MONITOR,
        "self._healing.awaited_ids().union(*moving)", "self._healing.awaited_ids()",
        "what a gate or a policy will send on is gone", SIMULATOR,
    ),
    Mutant(
        "sweeping-latest", "graph/retention.py",
        "    stays.keep_rows(v for v in latest if v is not None)\n", "",
        "who worked last on a problem is not known when healing tells it to submit", SIMULATOR,
    ),
    Mutant(
        "sweeping-untold", "monitor/sinks.py",
        "self.keep, self.pinned, self.given_up", "self.keep, self.pinned",
        "a sink gives up what a detector still waits for", SIMULATOR,
    ),
    Mutant(
        "sweeping-other-spans", "traces/otel/mapping.py",
        "        self._tree.forget_evicted(activations, events)\n",
        "",
        "what is exported refers to spans of others once numbers have changed", SIMULATOR,
    ),
    # -- recorder and holds ---
    Mutant(
        "ledger-no-wake", HOLDS,
        "if self._graph.present[agent].activation is None:", "if False:",
        "an idle agent is not woken for what it is given", SIMULATOR,
    ),
    Mutant(
        "ledger-not-arrived", HOLDS,
        "            self._arrived[agent] = None\n", "            pass\n",
        "what comes while an agent works is not noted", SIMULATOR,
    ),
    Mutant(
        "ledger-kept-some", HOLDS,
        "0 < remaining < len(inputs)", "0 < remaining <= len(inputs)",
        "an agent that waits is started again and again", SIMULATOR,
    ),
    Mutant(
        "ledger-system-event-lost", HOLDS,
        "Output(note, to, SYSTEM), to, about=about, scope=scope)",
        "Output(note, to, SYSTEM), to, about=about, scope=scope, hold=False)",
        "a system event is never delivered", SIMULATOR,
    ),
    Mutant(
        "ledger-redirect-lost", HOLDS,
        "        if hold:\n            self.held[event] = None",
        "        if hold:\n            pass",
        "a redirected event never arrives", SIMULATOR,
    ),
    Mutant(
        "ledger-not-diverted", HOLDS,
        "            self.diverted.add(event)\n", "            pass\n",
        "an answer that is sent back to its submitter and is lost on the way counts", SIMULATOR,
    ),
    Mutant(
        "ledger-unwritten", RECORDER,
        "self._sinks.write(rows)",
        "self._sinks.write([row for row in rows if row.t % 9])",
        "every ninth record is not written", SIMULATOR,
    ),
    Mutant(
        "ledger-effect-first", HOLDS,
        "        self._recorder.write(Deliver, event, agent)\n", "",
        "an event is delivered without a record", SIMULATOR,
    ),
    Mutant(
        "ledger-findings-late", RECORDER,
        "            findings = watch.advance(now)\n            self._report",
        "            findings = []\n            self._report",
        "what a window raises waits for the next record", SIMULATOR,
    ),
    # -- release ---
    Mutant(
        "release-gate-unasked", MONITOR,
        "and gates.keep(event):", "and gates.keep(event) and False:",
        "what a gate keeps is let go at once", SIMULATOR,
    ),
    Mutant(
        "release-backwards", HOLDS,
        "        return list(held)", "        return list(held)[::-1]",
        "events arrive in the reverse order", SIMULATOR,
    ),
    Mutant(
        "release-overtakes", HOLDS,
        "            if not line:\n                self._deliver(event, agent)",
        "            if True:\n                self._deliver(event, agent)",
        "a later event overtakes one that a gate keeps", SIMULATOR,
    ),
    Mutant(
        "release-last-first", HOLDS,
        "event, number = line.popleft()", "event, number = line.pop()",
        "what waited behind a gate comes last in, first out", SIMULATOR,
    ),
    Mutant(
        "release-too-much", HOLDS,
        "if self._graph.event(event).flight.get(agent) == number:", "if True:",
        "what waited behind a gate comes even to an agent it was taken away from", SIMULATOR,
    ),
    Mutant(
        "release-lanes-stuck", MONITOR,
        "                holds.deliver_waiting(gates.deciding)\n", "                pass\n",
        "what waits behind a gate waits for ever", SIMULATOR,
    ),
    Mutant(
        "release-first-recipient", HOLDS,
        "for agent, number in tuple(flight.items()):",
        "for agent, number in tuple(flight.items())[:1]:",
        "only the first of several recipients gets an event", SIMULATOR,
    ),
    Mutant(
        "release-gates-not-overruled", MONITOR,
        "                gates.overrule_late()\n", "                pass\n",
        "a gate may take as long as it likes", SIMULATOR,
    ),
    # -- gates ---
    Mutant(
        "gates-deadline-lost", GATES,
        "            heappush(self._late, (due, next(self._order), event, place))\n", "",
        "the deadline of a gate is not set", SIMULATOR,
    ),
    Mutant(
        "gates-not-released", GATES,
        "            del self.deciding[event]\n            self._holds.hold(event)",
        "            del self.deciding[event]",
        "what a gate has decided about is not let go", SIMULATOR,
    ),
    Mutant(
        "gates-uncontained", GATES,
        "            return hold\n        except PART_ERRORS as error:",
        "            return hold\n        except ValueError as error:",
        "a gate that raises ends the run", SIMULATOR,
    ),
    # -- healing ---
    Mutant(
        "budget-not-charged", HEALING,
        "        self._spent.update(limits.keys())\n", "",
        "healing has no end", SIMULATOR,
    ),
    Mutant(
        "budget-of-a-subject", HEALING,
        'f"subject {subject}": self._budget.per_subject',
        'f"subject {subject}": self._budget.per_run',
        "one subject may use the budget of the run", SIMULATOR,
    ),
    Mutant(
        "budget-of-a-pattern", HEALING,
        'f"pattern {finding.pattern}": self._budget.per_pattern',
        'f"pattern {finding.pattern}": self._budget.per_run',
        "one pattern may use the budget of the run", SIMULATOR,
    ),
    Mutant(
        "heal-told-not-done", HEALING,
        "            self._send(wish)\n            moved.add(wish.event)", "            pass",
        "a reroute is written down and does not happen", SIMULATOR,
    ),
    Mutant(
        "heal-done-not-told", HEALING,
        'self._write(row, "create", name, wish.to, wish.note, about=about_row)', "pass",
        "a system event is made and not written down", SIMULATOR,
    ),
    Mutant(
        "heal-wrong-event", HEALING,
        "self._holds.emit_notice(wish.note, wish.to, name, shown_about, scope)",
        "self._holds.emit_notice(wish.note, wish.to, about=shown_about, scope=scope)",
        "a system event has another name than was written down", SIMULATOR,
    ),
    Mutant(
        "heal-uncontained", HEALING,
        " for event in missing)\n        except PART_ERRORS as error:",
        " for event in missing)\n        except ValueError as error:",
        "a healer that raises ends the run", SIMULATOR,
    ),
    Mutant(
        "detector-uncontained", WATCH,
        "            except PART_ERRORS as error:  # a detector must never be able to stop a team\n"
        "                self._fail(part, f\"raised {error!r}\")\n            if stopwatch:",
        "            except ValueError as error:  # a detector must never be able to stop a team\n"
        "                self._fail(part, f\"raised {error!r}\")\n            if stopwatch:",
        "a detector that raises ends the run", SIMULATOR,
    ),
    Mutant(
        "detector-half-a-look", WATCH,
        "new = [_check_finding(self.graph, finding) for finding in raised]",
        "new = [findings.append(_check_finding(self.graph, finding)) for finding in raised] and []",
        "what a detector said before it failed counts", SIMULATOR,
    ),
    # -- delivery policies, payloads ---
    Mutant(
        "policy-uncontained", SCHEDULE,
        "            return step\n        except PART_ERRORS as error:",
        "            return step\n        except ValueError as error:",
        "a policy that raises ends the run", SIMULATOR,
    ),
    Mutant(
        "policy-not-asked-again", SCHEDULE,
        "            _, _, event, policy = heappop(self.timers)\n"
        "            self._ask_again(event, policy)",
        "            _, _, event, policy = heappop(self.timers)",
        "a policy that wants to be asked later is not", SIMULATOR,
    ),
    Mutant(
        "policy-arrives-never", SCHEDULE,
        "        if step.arrives:\n            holds.hold(event)\n", "",
        "what a policy lets arrive later never does", SIMULATOR,
    ),
    Mutant(
        "mail-dropped", PAYLOADS,
        "is_kept = event.id in live or",
        "is_kept = event.copies or",
        "what an event carries is dropped while it is on its way", SIMULATOR,
    ),
    # -- hosts ---
    Mutant(
        "host-failure-reads-notes", HOST,
        "fates = _delay([event.id for event in running.inputs] if running else ())",
        "fates: tuple[Fate, ...] = ()",
        "a failed activation has read its notes", SIMULATOR,
    ),
    Mutant(
        "host-no-retry", HOST,
        "        return wait\n\n    @property", "        return None\n\n    @property",
        "an agent that failed is not started again", SIMULATOR,
    ),
    Mutant(
        "simulation-ends-the-gone", SIMULATION,
        "self._at(us, happen, is_due)", "self._at(us, happen)",
        "an activation that ended with its agent's leaving ends again", SIMULATOR,
    ),
    Mutant(
        "simulation-no-timeout", SIMULATION,
        "if think > micros(limit_s):", "if think > 2 * micros(limit_s):",
        "an agent may take longer than its time", SIMULATOR,
    ),
    Mutant(
        "bus-wake-lost", BUS,
        "                await task.mail.wait()\n                task.mail = anyio.Event()\n"
        "                if not task.scope.cancel_called:  # mail may come with the agent's leave\n"
        "                    await self._activate(task)",
        "                await task.mail.wait()\n"
        "                await self._activate(task)\n                task.mail = anyio.Event()",
        "what comes while an agent works on the bus does not wake it", SHELL,
    ),
    Mutant(
        "bus-no-timeout", BUS,
        "anyio.move_on_after(timeout_s / self._setup.speed)", "anyio.move_on_after(None)",
        "an agent on the bus may take as long as it likes", SHELL,
    ),
    Mutant(
        "bus-no-retry", BUS,
        "                await task.mail.wait()\n            task.mail.set()",
        "                await task.mail.wait()",
        "an agent that failed on the bus is not started again", SHELL,
    ),
    Mutant(
        "bus-alarm-not-moved", BUS,
        "due < self._due", "due > self._due",
        "the timer is not set earlier when something is due earlier", SHELL,
    ),
    Mutant(
        "bus-gate-unheard", BUS,
        "self._request(partial(monitor.resolve,", "return (partial(monitor.resolve,",
        "what a gate on the bus decides is not told to the monitor", SHELL,
    ),
    Mutant(
        "bus-around-uncontained", "runtime/observers.py",
        "                scope.__enter__()\n            except PART_ERRORS as error:",
        "                scope.__enter__()\n            except ValueError as error:",
        "an export that fails on entering fails the activation", SHELL,
    ),
    # -- the journal ---
    Mutant(
        "journal-short-write", "traces/journal/appending.py",
        "            while unwritten:  # a write may be cut short",
        "            if unwritten:  # a write may be cut short",
        "a write that is cut short is not finished", SIMULATOR,
    ),
    Mutant(
        "journal-chain-broken", "graph/chain.py",
        "self._last = blake2b(self._last + body, digest_size=_DIGEST).digest()\n"
        "        return body",
        "self._last = blake2b(body, digest_size=_DIGEST).digest()\n        return body",
        "a line is not chained to the one before it", SIMULATOR,
    ),
    Mutant(
        "journal-fault-swallowed", RECORDER,
        "            self.can_write, self._is_closed, self.is_over = False, True, True\n"
        "            self.effects.clear()\n            raise",
        "            pass",
        "a run goes on after a record could not be written", SIMULATOR,
    ),
    # -- wrapped teams ---
    Mutant(
        "wrap-no-continuation", "adapters/base/turn.py",
        "self._mine = {*(self._mine or ()), continuation}", "self._mine = {*(self._mine or ())}",
        "a turn does not take up where it was", WRAPPED,
    ),
    Mutant(
        "wrap-notes-unread", "adapters/base/turn.py",
        "        self.texts.extend(event.notes)\n", "",
        "a turn is not shown the notes beside what it was called with", WRAPPED,
    ),
    Mutant(
        "wrap-instance-stays", "adapters/base/agent_instances.py",
        "            self._guard.ask(monitor.leave, instance)\n\n    def empty",
        "            pass\n\n    def empty",
        "an instance of an agent never leaves", WRAPPED,
    ),
    Mutant(
        "wrap-not-held", "adapters/base/calls.py",
        "return None if self._session.holds.is_held(self.event) else self._begin_turn()",
        "return self._begin_turn()",
        "a callee runs while its message is held", WRAPPED,
    ),
    Mutant(
        "wrap-answer-not-held", "adapters/base/calls.py",
        "return None if is_held else self._deliver_answer(turn)",
        "return self._deliver_answer(turn)",
        "a caller goes on while its answer is held", WRAPPED,
    ),
    Mutant(
        "wrap-bounce-ignored", "adapters/base/calls.py",
        "await self._was_bounced(turn, self._payload_of(result))",
        "(await self._was_bounced(turn, self._payload_of(result)) and False)",
        "an answer that comes back is handed out all the same", WRAPPED,
    ),
    Mutant(
        "wrap-failure-untold", "adapters/base/calls.py",
        "        if error is not None:\n            self._fail(error)\n", "        return\n",
        "a call that raised or was cancelled stays open for ever", WRAPPED,
    ),
    Mutant(
        "wrap-failure-swallowed", "adapters/base/calls.py",
        "            self._fail(error)\n\n    async def run(",
        "            self._fail(error)\n        return True\n\n    async def run(",
        "what an agent raises does not reach its caller", WRAPPED,
    ),
    Mutant(
        "wrap-cancelled-held", "adapters/base/calls.py",
        "        session.release(self._answer or self.event)\n", "",
        "what a cancelled call waited for stays held", WRAPPED,
    ),
    Mutant(
        "wrap-reroute-unfollowed", "adapters/base/calls.py",
        "if elsewhere and self._instance not in elsewhere:", "if not elsewhere:",
        "a call that healing sent to another agent goes to the first all the same", WRAPPED,
    ),
    Mutant(
        "wrap-observer-heals", "adapters/base/session.py",
        "return replace(setup, healers=None, ladder=False) if mode == \"observe\" else setup",
        "return setup",
        "a team that is only observed is healed", WRAPPED,
    ),
    Mutant(
        "wrap-fault-reaches-the-team", "adapters/base/guard.py",
        "            if self._strict:\n                raise\n            return default",
        "            raise",
        "a fault of the monitor reaches the team", WRAPPED,
    ),
]  # fmt: skip
