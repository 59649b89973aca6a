"""The monitor: hold, detect, heal, release, inside one synchronous call.

The way of an event through one call of the monitor, and the function that does each step:

1. request: the host calls `Monitor.inject` or `Monitor.end` (`monitor`); `Monitor._catch_up` first
   does what time has made due.
2. sanitize: `Sanitizer.external` and `Sanitizer.ending` check and copy what comes in (`sanitize`).
3. emit: `Holds.emit` generates the event (`holds`); a delivery policy decides its recipients in
   `DeliverySchedule.emit` (`schedule`; the policies are in `policies`). What it carries goes to
   `PayloadStore.put` (`payloads`).
4. hold: the event is in `Holds.held` until step 8.
5. look: `Recorder.write` applies each record to the graph, has the detectors look, and records
   what they find (`recorder`).
6. heal: `Healing.apply_healers` turns findings into interventions and carries them out (`healing`);
   `Healing.take_steps` does more where the steps before have not helped (`ladders`).
7. gate: `Gates.keep` asks whether a gate keeps the event for longer (`gates`); `Gates.resolve`
   holds it again when all its gates have decided. An event is kept in the same way while a person
   decides about healing (`approvals`).
8. release: `Monitor._release` takes what is held, in order. Steps 5 to 8 are repeated until nothing
   is found and nothing is held (`Monitor._settle`).
9. deliver or accept: `Holds.deliver` puts the event into the buffers of its recipients,
   `Holds.accept` hands an answer to the environment. From then on `LateWork` reports activations
   that go on for the answered request (`late_work`).
10. effects: `Recorder.take_effects` gives the records of the call to the sinks (`sinks`), and the
    call returns what the host has to do (`messages`).

Each module imports only those before it: messages, policies, relevance (which notes are about
which request), payloads, sinks, sanitize, recorder, late_work, holds, schedule, ladders, healing,
gates, approvals, monitor.
"""

from __future__ import annotations

from .monitor import Monitor

__all__ = ["Monitor"]
