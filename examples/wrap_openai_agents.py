"""A team of OpenAI agents, monitored: a handoff that goes round, and one that is dropped.

    python examples/wrap_openai_agents.py [DIRECTORY]

Two teams, both run twice: observed, then healed. In the first, two desks of a shop each believe
that the other one is responsible, until the SDK's limit of turns ends it. In the second, the front
desk hands a customer to two desks at once; the SDK carries out the first handoff and drops the
other, so half of the question is never looked at. The models are the SDK's own scripted ones; no
key, no network.
"""

import sys
import tempfile
from typing import Any

import anyio
from agents import Agent, MaxTurnsExceeded, Runner, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

import dig


def is_told(call: Any) -> bool:
    """Whether a note is the last thing that a model is given."""
    return str(call.input[-1].get("content")).startswith("[monitor]")


def clerk(name: str, other: str) -> Agent[Any]:
    """Hands every customer to another desk, unless it is told that this goes on and on."""

    def reply(call: Any) -> Any:
        if is_told(call):
            return [assistant_message(f"Nobody else will: {name} pays it back.")]
        return [function_call(f"transfer_to_{other}", {}, call_id=f"{name}-{len(call.input)}")]

    return Agent(name=name, model=ScriptedModel([ModelStep.respond(reply)] * 20))


def shop() -> Agent[Any]:
    """Two desks that hand a customer to each other."""
    refunds, billing = clerk("refunds", "billing"), clerk("billing", "refunds")
    refunds.handoffs, billing.handoffs = [billing], [refunds]
    return refunds


def front() -> Agent[Any]:
    """A front desk that hands over to two desks at once."""

    def mend(call: Any) -> Any:
        if is_told(call):
            return [function_call("transfer_to_shipping", {}, call_id="3")]
        return [assistant_message("The bill is mended.")]

    both = [
        function_call("transfer_to_billing", {}, call_id="1"),
        function_call("transfer_to_shipping", {}, call_id="2"),
    ]
    said = [assistant_message("The bill is mended, and your parcel comes on Monday.")]
    shipping = Agent(name="shipping", model=ScriptedModel([said] * 2))
    mending = ScriptedModel([ModelStep.respond(mend)] * 2)
    billing = Agent(name="billing", handoffs=[shipping], model=mending)
    return Agent(name="front", handoffs=[billing, shipping], model=ScriptedModel([both]))


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


async def ask(team: Agent[Any], mode: Any, runs: str, question: str) -> str:
    """Ask a team one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    team = dig.wrap(team, mode=mode, journal=runs, on_finding=tell)
    try:
        answer = str((await Runner.run(team, question)).final_output)
    except MaxTurnsExceeded as error:
        answer = f"{type(error).__name__}: {error}"
    session = dig.session_of(team)
    dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why: digmon check {session.directory}")
    print(f"  as a page: digmon report {session.directory}\n")
    return answer


async def main(runs: str) -> list[str]:
    """Both teams, observed and healed; returns the four answers."""
    set_tracing_disabled(True)
    asked = ((shop, "I was charged twice."), (front, "Mend my bill, and when does my parcel come?"))
    return [await ask(team(), mode, runs, q) for team, q in asked for mode in ("observe", "heal")]


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-"))
