"""Three agents for `digmon agent`: an editor asks two writers, and joins what they write."""

from __future__ import annotations

from dig.runtime import Decision, EventFate, NewEvent, View

WRITERS = ("ada", "bob")


async def editor(view: View) -> Decision:
    """Ask both writers about a topic, and submit when both parts are there."""
    for event in view.events:
        if event.sender is None:
            parts = [NewEvent(payload={**event.payload, "by": name}, to=[name]) for name in WRITERS]
            return Decision(fates=[EventFate(event=event.id, fate="consume")], outputs=parts)
    written = [event for event in view.events if event.sender in WRITERS]
    for topic in [event.payload["topic"] for event in written]:
        of_topic = [event for event in written if event.payload["topic"] == topic]
        if len({event.sender for event in of_topic}) == len(WRITERS):
            text = " ".join(event.payload["text"] for event in of_topic)
            return Decision(
                fates=[EventFate(event=event.id, fate="consume") for event in of_topic],
                outputs=[NewEvent(payload=text, type="solution", final=True)],
            )
    return Decision.wait()


async def ada(view: View) -> Decision:
    """Write the first part of each text."""
    return _write(view, "{} begin small.")


async def bob(view: View) -> Decision:
    """Write the second part of each text."""
    return _write(view, "{} end in the sea.")


def _write(view: View, text: str) -> Decision:
    outputs = [
        NewEvent(
            payload={**event.payload, "text": text.format(event.payload["topic"].title())},
            to=["editor"],
        )
        for event in view.events
        if event.sender == "editor"
    ]
    return Decision.respond(view, *outputs)
