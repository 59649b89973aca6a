"""The ranking of a conversation's steps: properties of answers, and where it does not apply."""

from __future__ import annotations

import json
from math import isclose
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.diagnosis.conversations.explaining import explain
from dig.diagnosis.conversations.flow import chain, data_flow, facts, loops, outcome
from dig.diagnosis.conversations.ranking import Weights, rank
from dig.diagnosis.conversations.reading import Conversation
from dig.diagnosis.conversations.wording import FEATURES, features
from dig.errors import SettingsError
from tests.diagnosis.conversations.talks import LOOP, history, talk, write

AGENTS = ("Ann_Expert", "Bob-Expert", "Cy (of Lund)", "Orchestrator", "Computer_terminal", "human")
TEXTS = (
    "", "TERMINATE", "exitcode: 0 (execution succeeded)\nthe lookup found 4,711 bridges",
    "exitcode: 1 (execution failed)\nTraceback (most recent call last)",
    "```python\nprint(1234)\n```", "Let us assume that there are 4711 bridges over the Arvo.",
    "Bob-Expert, please count the bridges between Lund and Minde.", "It is \"seventeen\", I say.",
)  # fmt: skip
ROWS = st.lists(st.tuples(st.sampled_from(AGENTS), st.sampled_from(TEXTS) | st.text()), min_size=1)


@given(rows=ROWS)
def test_every_conversation_has_an_answer(rows: list[tuple[str, str]]) -> None:
    """Shares of all candidates sum to 1, each stands at a step of its agent, the first answers."""
    case = talk(rows)
    found = rank(case)
    assert isclose(sum(one.share for one in found.candidates), 1)
    numbers = [one.step for one in found.candidates]
    assert len(set(numbers)) == len(numbers)
    for one in found.candidates:
        assert one.step is not None
        assert case.steps[one.step].agent == one.agent
        assert one.evidence and one.t is None
    shares = [one.share for one in found.candidates[1:]]
    assert shares == sorted(shares, reverse=True)
    assert found.chain[0] == numbers[0]
    assert sorted(set(found.chain)) == list(found.chain)


@given(rows=ROWS.filter(lambda rows: any(text.strip() for _, text in rows)))
def test_a_message_without_text_changes_nothing(rows: list[tuple[str, str]]) -> None:
    """Appended to a conversation, it changes neither candidates nor chain."""
    before, after = rank(talk(rows)), rank(talk([*rows, ("New_Expert", " \n")]))
    assert before.candidates == after.candidates
    assert before.chain == after.chain


@given(rows=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(TEXTS[:6])), min_size=1))
def test_renaming_agents_renames_the_answer(rows: list[tuple[int, str]]) -> None:
    """Names that tell of no role are of no importance."""
    first, second = (
        rank(talk([(names[number], text) for number, text in rows]))
        for names in (("North", "South", "East"), ("Zoe_Expert", "Yves", "X 1"))
    )
    assert [one.step for one in first.candidates] == [one.step for one in second.candidates]
    assert [one.share for one in first.candidates] == [one.share for one in second.candidates]


def test_the_invented_number_is_the_answer() -> None:
    """In the example the step that assumes a number ranks first, and its evidence says why."""
    found = rank(talk())
    first = found.candidates[0]
    assert (first.agent, first.step) == ("Map_Expert", 3)
    assert first.mechanism == "invention"
    assert found.chain == (3, 4, 5), "17 goes from the invention to the answer"
    assert "assumed or made up" in found.reason


def test_evidence_is_what_a_step_has() -> None:
    """A sentence about a feature stands only at a step that has the feature."""
    says = {one.says: name for name, one in FEATURES.items()}
    case = talk()
    rows = dict(zip([one.number for one in case.candidates], features(case), strict=True))
    shown = [(one.step, e.says) for one in rank(case).candidates for e in one.evidence]
    known = [(step, says[text]) for step, text in shown if text in says]
    assert len(known) >= 5
    assert all(rows[step][feature] > 0 for step, feature in known if step is not None)


def test_a_long_team_with_a_planner_gets_the_answer_of_the_floor() -> None:
    """More than 15 candidates under a planner: who leads, the last step, and the reason why."""
    rows = [*LOOP[:-1], *LOOP[2:-1], *LOOP[2:-1], LOOP[-1]]
    case = talk(rows)
    assert len(case.candidates) > 15
    found = rank(case)
    planners = {one.agent for one in case.candidates if one.role == "planner"}
    first, *others = found.candidates
    assert {first.agent} == planners and first.step == case.steps[-1].number
    assert found.confidence == "low" and first.mechanism is None
    assert [(one.name, one.status) for one in found.stages] == [
        ("features", "done"), ("ranking", "skipped"), ("floor", "done")
    ]  # fmt: skip
    assert len(others) == len(case.candidates) - 1
    assert "no better here than a floor" in found.reason
    assert "the agent that leads, and the last step" in found.notes[-1]


def test_a_conversation_of_another_kind_gets_the_rule_of_thumb() -> None:
    """Most numbers outside of what training showed: the ranking is skipped, and says why."""
    shipped = Weights.read()
    narrow = {
        name: one.model_copy(update={"low": 1e6, "high": 1e7})
        for name, one in shipped.features.items()
    }
    found = rank(talk(), shipped.model_copy(update={"features": narrow}))
    assert found.candidates[0].step == 5
    assert found.stages[1].status == "skipped"
    assert "outside the range" in (found.stages[1].why or "")


# --- loops ---


def changed(commands: tuple[str, ...]) -> Conversation:
    rows = [list(row) for row in LOOP]
    for number, text in zip((2, 4, 6), commands, strict=True):
        rows[number][1] = text
    return talk([(who, text) for who, text in rows])


def test_a_planner_that_repeats_itself_is_responsible() -> None:
    """From its first repetition after a failure on; the loop's best share goes there."""
    (loop,) = loops(talk(LOOP))
    assert loop.planner_steps == (1, 2, 4, 6) and loop.executor_steps == (3, 5, 7)
    assert loop.same_command and loop.failed
    assert loop.responsible == 4
    found = {one.step: one.share for one in rank(talk(LOOP)).candidates}
    assert found[4] == max(found[number] for number in loop.steps)


def test_a_worker_that_fails_at_changing_commands_is_responsible() -> None:
    """The planner changed its command, so the first failing step is the worker's."""
    case = changed(("Open the museum's site now.", "Try a search engine.", "Phone somebody."))
    (loop,) = loops(case)
    assert not loop.same_command
    assert loop.responsible == 3


def test_news_ends_a_loop() -> None:
    """A worker that succeeds with something new is in no loop."""
    rows = [list(row) for row in LOOP]
    for number, text in (
        (3, "Nine in the morning."),
        (5, "Ferries leave hourly."),
        (7, "Adult: 4"),
    ):
        rows[number][1] = text
    assert loops(talk([(who, text) for who, text in rows])) == []


# --- facts ---


def test_facts_are_numbers_names_addresses_and_quotes() -> None:
    """Numbers lose separators and signs; one digit and the first word of a sentence are none."""
    text = 'There are $4,711.00 and 5% in the Arvo, says "old map" at https://a.example/x1.'
    assert facts(text) == {
        "4711": "number", "https://a.example/x1": "text", "old map": "text", "arvo": "text"
    }  # fmt: skip


def test_data_flow_goes_from_the_latest_step_that_has_it() -> None:
    """Each use is an edge, and the chain is the shortest way along edges."""
    case = talk([("A", "we got 4711"), ("B", "then 4711"), ("A", "so 4711 and 99"), ("B", "99")])
    edges = data_flow(case)
    assert [(one.source, one.target, one.fact) for one in edges] == [
        (0, 1, "4711"), (1, 2, "4711"), (2, 3, "99")
    ]  # fmt: skip
    ways = [(one.source, one.target) for one in edges]
    assert chain(ways, 0, 3) == (0, 1, 2, 3)
    assert chain([*ways, (0, 2)], 0, 3) == (0, 2, 3)
    assert chain(ways, 3, 0) == (3,)


def test_outcomes_of_tools() -> None:
    """An exit code speaks first; then the lists of words."""
    assert outcome("exitcode: 2 (execution failed)") == "failed"
    assert outcome("exitcode: 0\nThere is no code to run") == "nothing"
    assert outcome("exitcode: 0\n42") == "done"
    assert outcome(f"exitcode: -{'9' * 5000}") == "failed"


# --- determinism and weights ---


def test_the_document_has_every_key(tmp_path: Path) -> None:
    """A conversation is taken as failed; `graph` is there only on request."""
    path = write(tmp_path / "1.json", history())
    row = json.loads(explain(path).to_json())
    assert row["source"]["kind"] == "conversation" and row["source"]["records"] is None
    assert row["goal"] == {**row["goal"], "test": "none", "good": False, "progress": None}
    assert row["failures"][0]["kind"] == "complaint"
    assert (row["confidence"], row["fix"], row["model"]) == ("suspected", None, None)
    assert "graph" not in row
    graph = json.loads(explain(path, has_graph=True).to_json())["graph"]
    assert {*graph} == {"subtasks", "agents", "edges", "loops"}


def test_weights_are_checked(tmp_path: Path) -> None:
    """A file of another shape, or with an unknown feature, is refused with its place."""
    with pytest.raises(SettingsError, match="holds no weights"):
        Weights.read(write(tmp_path / "a.json", {"weights": 3}))
    row = json.loads(Weights.read().model_dump_json())
    row["features"]["luck"] = row["features"]["has code"]
    with pytest.raises(SettingsError, match="no feature 'luck'"):
        Weights.read(write(tmp_path / "b.json", row))
    with pytest.raises(SettingsError, match="cannot be read"):
        Weights.read(tmp_path / "c.json")
