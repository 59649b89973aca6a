"""`python -m bench [--quick] [NAME ...]`: run the benchmarks, all of them by default."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from . import (
    behaviour,
    bounded,
    bytecodes,
    entrance,
    evidence,
    explaining,
    flat,
    hooks,
    install,
    journal,
    memory,
    merging,
    observers,
    otel,
    peers,
    pictures,
    starting,
    teams,
    traces,
    wrap_payloads,
)
from .measure import Table

BENCHES: dict[str, Callable[[bool], Table]] = {
    "bus": lambda quick: teams.bus(),
    "simulator": lambda quick: teams.simulator(),
    "reading": lambda quick: traces.reading(),
    "comparing": lambda quick: behaviour.comparing(),
    "listing": lambda quick: behaviour.listing(),
    "journal": lambda quick: journal.journal(),
    "levels": lambda quick: journal.levels(),
    "looking-back": lambda quick: journal.looking_back(),
    "looking-back-memory": lambda quick: journal.memory(),
    "hooks": hooks.hooks,
    "install": install.installing,
    "starting": lambda quick: starting.starting(),
    "flat": flat.flat,
    "open": flat.many_open,
    "evidence": evidence.evidence,
    "explaining": explaining.explaining,
    "bounded": bounded.bounded,
    "memory": memory.memory,
    "pauses": memory.pauses,
    "merging": merging.merging,
    "rescans": peers.rescans,
    "observers": observers.observers,
    "peers": peers.peers,
    "bytecodes": bytecodes.bytecodes,
    "entrance": entrance.entrance,
    "export": otel.hot_path,
    "spans": otel.spans,
    "dead-receiver": otel.dead_receiver,
    "pictures": pictures.pictures,
    "drawing": pictures.drawing,
    "wrap": partial(wrap_payloads.wrapping, "plain callables"),
    "wrap-a2a": partial(wrap_payloads.wrapping, "A2A"),
    "wrap-ag2": partial(wrap_payloads.wrapping, "AG2"),
    "wrap-agent-framework": partial(wrap_payloads.wrapping, "agent-framework"),
    "wrap-autogen": partial(wrap_payloads.wrapping, "AutoGen chat"),
    "wrap-autogen-core": partial(wrap_payloads.wrapping, "AutoGen core"),
    "wrap-crewai": partial(wrap_payloads.wrapping, "CrewAI"),
    "wrap-google-adk": partial(wrap_payloads.wrapping, "Google ADK"),
    "wrap-langgraph": partial(wrap_payloads.wrapping, "LangGraph"),
    "wrap-llama-index": partial(wrap_payloads.wrapping, "LlamaIndex"),
    "wrap-openai-agents": partial(wrap_payloads.wrapping, "OpenAI Agents"),
    "wrap-pydantic-ai": partial(wrap_payloads.wrapping, "Pydantic AI"),
    "wrap-payloads": wrap_payloads.payloads,
}


def main() -> None:
    quick = "--quick" in sys.argv  # a tenth of the size, fewer rounds
    names = [name for name in sys.argv[1:] if name != "--quick"] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"bench: there is no {', '.join(unknown)}; known are: {', '.join(BENCHES)}")
    for name in names:
        print(BENCHES[name](quick), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
