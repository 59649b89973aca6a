"""An investigation in at most 20 lines, and a step of it in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dig._util.text import counted, cut, name, one_line

from .controller import Controller, LedgerLine
from .investigation import Investigation

MOST_CAUSES, MOST_ALERTS, MOST_CHANGES = 4, 5, 4
MOST_ON_A_PATH = 6

_ENDED = {
    "converged": "nothing was left to judge",
    "budget": "the budget was used up",
    "stopped": "the policy failed three times in a row",
}


def step_line(controller: Controller, line: LedgerLine) -> str:
    """A step: `12/300 svc-4: symptom of svc-9 (failed-call); 3 active`.

    Args:
        controller: The controller that made it.
        line: The step.
    """
    belief = line.belief
    types = {one.id: one.type for one in controller.world.evidence(line.entity, controller.window)}
    shown = types.get(belief.evidence[0], "") if belief.evidence else ""
    what = belief.label + (f" of {name(belief.by)}" if belief.by is not None else "")
    because = f" ({one_line(shown, 40)})" if shown else ""
    return (
        f"{line.step}/{controller.budget} {name(line.entity)}: {what}{because}; "
        f"{line.active} active"
    )


def tell(found: Investigation) -> Iterator[str]:
    """The answer, the way from it to each alarm, and what changed beliefs."""
    yield _first_line(found)
    beliefs = {one.name: one for one in found.entities}
    for entity in found.answer[:MOST_CAUSES]:
        judged = beliefs.get(entity)
        if judged is not None:
            shown = f" [{cut([name(one) for one in judged.evidence], most=3)}]"
            yield f"  {name(entity)}: {one_line(judged.why, 120)}{shown if judged.evidence else ''}"
    explained = [one for one in found.alerts_explained if one.explained]
    for one in explained[:MOST_ALERTS]:
        yield f"{one_line(one.alert.name, 40)} at {name(one.alert.entity)}: {_path(one.by)}"
    if len(explained) > MOST_ALERTS:
        yield f"and {counted(len(explained) - MOST_ALERTS, 'more alarm')}"
    if found.unexplained:
        told = cut([one_line(one, 60) for one in found.unexplained], "; ", most=3)
        yield f"Not explained: {told}"
    changes = [*_changes(found.ledger)]
    for change in changes[:MOST_CHANGES]:
        yield f"  {change}"
    if len(changes) > MOST_CHANGES:
        yield f"  and {counted(len(changes) - MOST_CHANGES, 'more change')} of a belief"
    without = "" if found.messages else ", without messages"
    yield (
        f"{counted(found.steps, 'step')} by {one_line(found.policy, 40)}{without}, "
        f"{len(found.entities)} of its parts judged: {_ENDED[found.ended]}"
    )
    if found.votes is not None:
        number = len(found.votes.frontiers)
        yield (
            f"{number} {found.votes.by}; their frontiers agree by {found.votes.agreement:.2f} "
            "(mean Jaccard index)"
        )
    if found.cost.model_calls:
        tokens = found.cost.input_tokens + found.cost.output_tokens
        usd = f", ${found.cost.usd:.4f}" if found.cost.usd is not None else ""
        yield f"{counted(found.cost.model_calls, 'request')}, {counted(tokens, 'token')}{usd}"


def _first_line(found: Investigation) -> str:
    if found.frontier:
        return f"{name(found.name)}: it began at {_listed(found.frontier)}"
    if found.answer:
        return f"{name(found.name)}: no origin was found; a guess is {_listed(found.answer)}"
    return f"{name(found.name)}: no origin was found, and no entity is in trouble"


def _listed(entities: Sequence[str]) -> str:
    return cut([name(one) for one in entities], most=MOST_CAUSES)


def _path(entities: Sequence[str]) -> str:
    shown = [name(one) for one in entities]
    if len(shown) > MOST_ON_A_PATH:
        shown = [*shown[: MOST_ON_A_PATH - 2], "...", shown[-1]]
    return " -> ".join(shown)


def _changes(ledger: Sequence[LedgerLine]) -> Iterator[str]:
    """Each change of a label, with the last message that came before it."""
    last: dict[str, LedgerLine] = {}
    sent: dict[str, LedgerLine] = {}
    for line in ledger:
        before, message = last.get(line.entity), sent.get(line.entity)
        if before is not None and before.belief.label != line.belief.label:
            by = f"{name(message.entity)}'s message at step {message.step}" if message else "then"
            yield f"{name(line.entity)} was {before.belief.label} until {by}"
        last[line.entity] = line
        for other in line.told:
            sent[other] = line
