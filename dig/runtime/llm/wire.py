"""A decision in the shape that a model is asked for.

`Decision` itself cannot be asked for in OpenAI's strict mode, where every value has a type and
every field is required: a payload may be anything. Here it is a string with JSON text in it.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from dig.errors import DecisionError
from dig.graph.records import FateName
from dig.monitor.sanitize import check_decision
from dig.runtime.agents import Decision, EventFate, NewEvent, View

from .encoding import JsonText, decoded


class WireFate(BaseModel):
    """What you do with one event."""

    event: str = Field(description="The event's id.")
    fate: FateName
    to: list[str] = Field(default=[], description="For a reroute: the agents it goes to.")


class WireEvent(BaseModel):
    """An event that you generate."""

    type: str = Field(default="message", description="problem, raw_data, solution or message.")
    to: list[str] = Field(default=[], description="The agents it goes to.")
    payload: JsonText = Field(description="What it carries, as JSON text.")
    final: bool = Field(default=False, description="Whether it submits the team's answer.")


class WireDecision(BaseModel):
    """What you do now."""

    fates: list[WireFate] = Field(default=[], description="One for each event in front of you.")
    outputs: list[WireEvent] = Field(default=[], description="The events that you generate.")

    def decision(self) -> Decision:
        """The decision.

        Raises:
            ValueError: A payload is no JSON.
        """
        outputs = []
        for i, output in enumerate(self.outputs):
            try:
                payload = decoded(output.payload)
            except ValueError as error:
                raise ValueError(f"outputs.{i}.payload: {error}") from None
            outputs.append(
                NewEvent(payload=payload, to=output.to, type=output.type, final=output.final)
            )
        fates = [EventFate(event=one.event, fate=one.fate, to=one.to) for one in self.fates]
        return Decision(fates=fates, outputs=outputs)


def check(view: View, wire: WireDecision) -> None:
    """Find out whether a decision fits what the agent was shown.

    Recipients are not looked at: to write to nobody is a mistake that agents make, and that the
    monitor finds.

    Raises:
        ValueError: It does not; the message says what is wrong.
    """
    try:
        check_decision([event.id for event in view.events], *wire.decision().parts())
    except DecisionError as error:
        raise ValueError(str(error)) from None
