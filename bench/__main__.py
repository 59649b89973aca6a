"""`python -m bench [--quick] [NAME ...]`: run the benchmarks, all of them by default."""

from __future__ import annotations

import sys
from collections.abc import Callable

from . import (
    behaviour,
    bounded,
    entrance,
    evidence,
    flat,
    journal,
    memory,
    merging,
    otel,
    peers,
    pictures,
    starting,
    teams,
    traces,
    wrap,
    wrap_ag2,
    wrap_agent_framework,
    wrap_autogen,
    wrap_langgraph,
    wrap_openai_agents,
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
    "starting": lambda quick: starting.starting(),
    "flat": flat.flat,
    "open": flat.many_open,
    "evidence": evidence.evidence,
    "bounded": bounded.bounded,
    "memory": memory.memory,
    "pauses": memory.pauses,
    "merging": merging.merging,
    "rescans": peers.rescans,
    "peers": peers.peers,
    "entrance": entrance.entrance,
    "export": otel.hot_path,
    "spans": otel.spans,
    "dead-receiver": otel.dead_receiver,
    "pictures": pictures.pictures,
    "drawing": pictures.drawing,
    "wrap": wrap.wrapping,
    "wrap-ag2": wrap_ag2.wrapping,
    "wrap-agent-framework": wrap_agent_framework.wrapping,
    "wrap-autogen": wrap_autogen.chatting,
    "wrap-autogen-core": wrap_autogen.asking,
    "wrap-langgraph": wrap_langgraph.wrapping,
    "wrap-openai-agents": wrap_openai_agents.wrapping,
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
