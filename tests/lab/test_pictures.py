"""Pages of conversations and investigations: what their rows say, in the order of the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dig.diagnosis.conversations.explaining import explain
from dig.diagnosis.conversations.reading import read_conversation
from dig.diagnosis.pictures import draw_conversation
from dig.errors import JournalError
from dig.lab.investigate.beliefs import JudgingPolicy, Label, LocalJudgement, Packet
from dig.lab.investigate.investigation import investigate
from dig.lab.investigate.investigation_page import draw_investigation
from dig.lab.investigate.rules import ServiceRules
from dig.lab.investigate.snapshot import Snapshot
from tests.diagnosis.conversations.talks import BRIDGES, TASK, history, write
from tests.lab.investigate.worlds import FLASH_SALE, Scripted, cited, noted, world
from tests.show.page.pages import inlined

Rows = list[dict[str, Any]]


class Recorded(Scripted):
    """The rules for services, which keep the packets that they got."""

    def __init__(self) -> None:
        super().__init__(ServiceRules().judge)


def shown(out: Path) -> tuple[dict[str, Any], Rows]:
    """The head and the rows of a page."""
    data = inlined(out.read_text("utf-8"))
    return data["head"], data["rows"]


def of(rows: Rows, kind: str) -> Rows:
    return [one for one in rows if one["kind"] == kind]


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Rows]:
    folder = tmp_path_factory.mktemp("talk")
    path = write(folder / "chat.json", history())
    found = explain(path, has_graph=True)
    draw_conversation(read_conversation(path), found, folder / "chat.html")
    return shown(folder / "chat.html")


def test_a_lane_an_agent_and_a_message_a_step(talk: tuple[dict[str, Any], Rows]) -> None:
    """Agents in the order in which they speak; each text is whole, with its step's number."""
    _, rows = talk
    said = [one for one in of(rows, "emit") if one["by"] is not None]
    assert rows[0]["agents"] == [*dict.fromkeys(who for who, _ in BRIDGES)]
    assert [one["agent"] for one in of(rows, "start")] == [who for who, _ in BRIDGES]
    assert [one["payload"] for one in said] == [text for _, text in BRIDGES]
    assert [one["event"] for one in said] == [f"text {n}" for n in range(len(BRIDGES))]
    assert said[2]["type"] == "tool"
    assert of(rows, "emit")[0]["payload"] == TASK


def test_facts_are_what_goes_from_step_to_step(talk: tuple[dict[str, Any], Rows]) -> None:
    """The 17 bridges that step 3 invents go on to step 4, and from there to step 5."""
    _, rows = talk
    inputs = {one["activation"]: one["inputs"] for one in of(rows, "start")}
    assert inputs["step 4"] == ["text 3"] and "text 4" in inputs["step 5"]
    assert inputs["step 0"] == ["task"]


def test_the_answer_is_chosen_and_subtasks_are_bands(talk: tuple[dict[str, Any], Rows]) -> None:
    """The first finding is the answer, with its chain as path; bands cover all records in order."""
    head, rows = talk
    first, *others = of(rows, "finding")
    assert first["title"] == "Cause: Map_Expert, step 3" and first["severity"] == "error"
    assert {one["severity"] for one in others} == {"notice"}
    assert head["open"] == f"is=finding&id={first['t']}"
    assert first["paths"][0]["nodes"][:3] == ["step 3", "text 3", "step 4"]
    ends = [(one["from"], one["to"]) for one in head["bands"]]
    assert [a for a, _ in ends[1:]] == [b for _, b in ends[:-1]]
    assert ends[-1][1] == rows[-len(others) - 2]["t"] + 1 and head["unit"] == "steps"


def test_names_and_texts_cannot_hide_what_stands_beside_them(tmp_path: Path) -> None:
    """Marks that turn or hide text are told as such, and an agent's steps stay in its lane."""
    said = [("Eve\u202e", "The answer is \u202e7\x1b[31m, as I have found in the old map of Lund.")]
    path = write(tmp_path / "chat.json", history([*said, *BRIDGES]))
    out = tmp_path / "chat.html"
    draw_conversation(read_conversation(path), explain(path, has_graph=True), out)
    _, rows = shown(out)
    assert "\u202e" not in json.dumps(rows, ensure_ascii=False)
    assert of(rows, "start")[0]["agent"] == rows[0]["agents"][0] == "Eve\\u202e"


# --- investigations ---


BLAMED = {"a": "b", "b": "c", "c": "d"}


def judge(packet: Packet) -> LocalJudgement:
    """`a` blames `b`, and so on; `d` is the origin, all else is healthy."""
    by = BLAMED.get(packet.entity)
    label: Label = "symptom" if by else "origin" if packet.entity == "d" else "healthy"
    return LocalJudgement(label, by, 0.5, () if label == "healthy" else cited(packet))


def chain() -> Snapshot:
    calls = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "e")]
    return world("abcde", calls, alerts=["a", "e"], evidence=noted("abcde"))


def drawn(made: Snapshot, policy: JudgingPolicy, out: Path) -> tuple[dict[str, Any], Rows]:
    draw_investigation(investigate(made, policy), made, out)
    return shown(out)


def test_layers_go_from_the_frontier_to_the_alarms(tmp_path: Path) -> None:
    """Lanes and the explanation have the order of the links; what explains nothing comes last."""
    head, rows = drawn(chain(), Scripted(judge), tmp_path / "page.html")
    assert rows[0]["agents"] == ["d", "c", "b", "a", "e"]
    names = [one["activation"] for one in of(rows, "start")]
    assert names[-4:] == ["d: origin", "c: symptom", "b: symptom", "a: symptom"]
    links = [one["event"] for one in of(rows, "emit") if one["type"] == "claim"]
    assert links == ["d -> c", "c -> b", "b -> a"]
    (finding,) = of(rows, "finding")
    assert set(finding["ids"]) == {*names[-4:], *links} and finding["title"] == "Origin: d"
    assert finding["paths"][0]["nodes"][:3] == ["d: origin", "d -> c", "c: symptom"]
    assert head["answers"]["headline"] == "It began at d." and head["lanes"] == "part"


def test_an_answer_of_most_runs_may_begin_within_a_way(tmp_path: Path) -> None:
    """The majority's answer need not be that of the run that is shown."""
    made, out = chain(), tmp_path / "page.html"
    found = replace(investigate(made, Scripted(judge)), frontier=("c",))
    draw_investigation(found, made, out)
    _, rows = shown(out)
    (finding,) = of(rows, "finding")
    assert finding["paths"][0]["nodes"] == [
        "c: symptom", "c -> b", "b: symptom", "b -> a", "a: symptom"
    ]  # fmt: skip


def test_a_judgement_has_the_packet_that_it_was_made_from(tmp_path: Path) -> None:
    """Its inputs are its evidence and the messages that counted, as the policy got them."""
    made, policy = Snapshot.read(FLASH_SALE), Recorded()
    _, rows = drawn(made, policy, tmp_path / "page.html")
    emitted = {one["event"]: one for one in of(rows, "emit")}
    judged = of(rows, "start")[: len(policy.packets)]
    assert len(judged) == len(policy.packets) == 10
    by = {one["activation"]: one["agent"] for one in of(rows, "start")}
    for start, packet in zip(judged, policy.packets, strict=True):
        evidence, *beliefs = start["inputs"]
        assert start["agent"] == packet.entity
        facts = json.loads(emitted[evidence]["payload"])["evidence"]
        assert [one["id"] for one in facts] == [one.id for one in packet.evidence]
        told = [(by[emitted[one]["by"]], emitted[one]["type"]) for one in beliefs]
        assert told == [(one.sender, one.belief.label) for one in packet.inbox]


def test_without_an_origin_the_page_says_that_it_guesses(tmp_path: Path) -> None:
    """The flag is a guess; the same entity leads the answer in words."""
    policy = Scripted(lambda packet: LocalJudgement("defer", weight=0.1))
    head, rows = drawn(chain(), policy, tmp_path / "page.html")
    assert [one["pattern"] for one in of(rows, "finding")] == ["guess"]
    assert head["answers"]["headline"].startswith("A guess: it began at a")


def test_nothing_known_is_a_page_too(tmp_path: Path) -> None:
    """Without alarms nothing is judged, and nothing is found."""
    head, rows = drawn(world("ab"), Scripted(judge), tmp_path / "page.html")
    assert of(rows, "start") == [] == of(rows, "finding")
    assert head["open"] == "" and "no place that is known" in head["answers"]["headline"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The error names it."""
    with pytest.raises(JournalError, match="nowhere"):
        drawn(chain(), Scripted(judge), tmp_path / "nowhere" / "page.html")
