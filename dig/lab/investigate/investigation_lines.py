"""An investigation as at most 20 lines of text, and a step as one line."""

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
    facts = controller.world.evidence(line.entity, controller.window)
    types = {fact.id: fact.type for fact in facts}
    shown = types.get(belief.evidence[0], "") if belief.evidence else ""
    label = belief.label + (f" of {name(belief.by)}" if belief.by is not None else "")
    because = f" ({one_line(shown, 40)})" if shown else ""
    return (
        f"{line.step}/{controller.budget} {name(line.entity)}: {label}{because}; "
        f"{line.active} active"
    )


def tell(investigation: Investigation) -> Iterator[str]:
    """The answer, the paths to the alarms, and the changes of beliefs."""
    yield _first_line(investigation)
    beliefs = {entity.name: entity for entity in investigation.entities}
    for entity in investigation.answer[:MOST_CAUSES]:
        judged = beliefs.get(entity)
        if judged is not None:
            shown = f" [{cut([name(fact) for fact in judged.evidence], most=3)}]"
            yield f"  {name(entity)}: {one_line(judged.why, 120)}{shown if judged.evidence else ''}"
    explained = [alert for alert in investigation.alerts_explained if alert.explained]
    for alert in explained[:MOST_ALERTS]:
        yield f"{one_line(alert.alert.name, 40)} at {name(alert.alert.entity)}: {_path(alert.by)}"
    if len(explained) > MOST_ALERTS:
        yield f"and {counted(len(explained) - MOST_ALERTS, 'more alarm')}"
    if investigation.unexplained:
        alarms = [one_line(alert, 60) for alert in investigation.unexplained]
        yield f"Not explained: {cut(alarms, '; ', most=3)}"
    changes = [*_changes(investigation.ledger)]
    for change in changes[:MOST_CHANGES]:
        yield f"  {change}"
    if len(changes) > MOST_CHANGES:
        yield f"  and {counted(len(changes) - MOST_CHANGES, 'more change')} of a belief"
    without = "" if investigation.messages else ", without messages"
    yield (
        f"{counted(investigation.steps, 'step')} by {one_line(investigation.policy, 40)}{without}, "
        f"{len(investigation.entities)} of its parts judged: {_ENDED[investigation.ended]}"
    )
    if investigation.votes is not None:
        number = len(investigation.votes.frontiers)
        yield (
            f"{number} {investigation.votes.by}; their frontiers agree by "
            f"{investigation.votes.agreement:.2f} (mean Jaccard index)"
        )
    if investigation.cost.model_calls:
        cost = investigation.cost
        tokens = cost.input_tokens + cost.output_tokens
        usd = f", ${cost.usd:.4f}" if cost.usd is not None else ""
        yield f"{counted(cost.model_calls, 'request')}, {counted(tokens, 'token')}{usd}"


def _first_line(investigation: Investigation) -> str:
    if investigation.frontier:
        return f"{name(investigation.name)}: it began at {_list_names(investigation.frontier)}"
    if investigation.answer:
        guess = _list_names(investigation.answer)
        return f"{name(investigation.name)}: no origin was found; a guess is {guess}"
    return f"{name(investigation.name)}: no origin was found, and no entity is in trouble"


def _list_names(entities: Sequence[str]) -> str:
    return cut([name(entity) for entity in entities], most=MOST_CAUSES)


def _path(entities: Sequence[str]) -> str:
    shown = [name(entity) for entity in entities]
    if len(shown) > MOST_ON_A_PATH:
        shown = [*shown[: MOST_ON_A_PATH - 2], "...", shown[-1]]
    return " -> ".join(shown)


def _changes(ledger: Sequence[LedgerLine]) -> Iterator[str]:
    """Each change of a label, with the last message before."""
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
