"""Message logs as runs: the graph that they imply, and every guess told."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dig.errors import TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.records import End, IncidentRow, Run
from dig.traces.interchange.imports import Imported, import_file

CHAT = """\
id,from,to,at,reply_to,content
q,user,planner,2026-03-01T10:00:00Z,,Count the words
a,planner,ann,2026-03-01T10:00:02Z,q,first half
b,planner,bob,2026-03-01T10:00:02Z,q,second half
c,ann,planner,2026-03-01T10:00:05Z,a,120
d,bob,planner,2026-03-01T10:00:09.500Z,b,98
e,planner,user,2026-03-01T10:00:11Z,c;d,218
"""


def read(folder: Path, text: str, name: str = "chat.csv") -> Imported:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return import_file(path)


def graph(imported: Imported) -> InteractionGraph:
    return InteractionGraph.of(imported.records)


def edges(imported: Imported) -> set[tuple[str, str, str | None]]:
    found = graph(imported).to_networkx().edges(data=True)
    return {(source, target, keys.get("fate")) for source, target, keys in found}


def test_a_log_that_says_all_becomes_the_run_it_tells_of(tmp_path: Path) -> None:
    """Who was activated by what and made what; the message to the user is the answer."""
    imported = read(tmp_path, CHAT)
    assert imported.format == "log"
    assert edges(imported) == {
        ("q", "turn-1", "consume"), ("turn-1", "a", None), ("turn-1", "b", None),
        ("a", "turn-2", "consume"), ("turn-2", "c", None),
        ("b", "turn-3", "consume"), ("turn-3", "d", None),
        ("c", "turn-4", "consume"), ("d", "turn-4", "consume"), ("turn-4", "e", None),
    }  # fmt: skip
    found = graph(imported)
    assert found.is_accepted("e")
    assert found.now == 11_000_000
    assert [r.us for r in imported.records if isinstance(r, End)] == [
        2_000_000, 5_000_000, 9_500_000, 11_000_000,
    ]  # fmt: skip
    first = imported.records[0]
    assert isinstance(first, Run)
    assert (first.agents, first.session, first.memory) == (("planner", "ann", "bob"), True, True)


ROWS: list[dict[str, Any]] = [
    {"id": "q", "from": "user", "to": "planner", "at": 0},
    {"id": "a", "from": "planner", "to": ["ann"], "at": 2, "reply_to": "q"},
    {"id": "b", "from": "planner", "to": ["bob"], "at": 2, "reply_to": ["q"]},
    {"id": "c", "from": "ann", "to": "planner", "at": 5, "reply_to": ["a"]},
    {"id": "d", "from": "bob", "to": "planner", "at": 9.5, "reply_to": "b"},
    {"id": "e", "from": "planner", "to": "user", "at": "11", "reply_to": ["c", "d"]},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.json", json.dumps(ROWS)),
        ("log.json", json.dumps({"messages": ROWS, "title": "more"})),
        ("log.jsonl", "\n".join(map(json.dumps, ROWS)) + "\n\n"),
        ("log.csv", "\ufeff" + CHAT.replace("at,", "time,").replace("from,", "Sender ,")),
    ],
)
def test_json_and_csv_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    """A list, an object with `messages`, a line each, other names of columns: the same run."""
    wanted = read(tmp_path, CHAT)
    found = read(tmp_path, text, name)
    assert edges(found) == edges(wanted)
    assert [r.us for r in found.records] == [r.us for r in wanted.records]


def test_every_guess_is_told_and_stands_in_the_trace(tmp_path: Path) -> None:
    """What was supplied is an `incident` right after the first record, each kind once."""
    rows = [{"from": "user", "to": "x"}, {"from": "x", "to": "*"}, {"from": "y", "to": "x"},
            {"from": "x"}, {"from": "x", "to": "user"}]  # fmt: skip
    imported = read(tmp_path, json.dumps(rows), "log.json")
    guesses = list(imported.guesses)
    incidents = [r for r in imported.records if isinstance(r, IncidentRow)]
    assert [r.t for r in incidents] == list(range(1, len(guesses) + 2))
    assert [r.detail for r in incidents[1:]] == [f"guess: {guess}" for guess in guesses]
    text = "\n".join(guesses)
    for guess in ("without a time", "without an id", "to everybody", "to nobody in particular",
                  "does not say what it replies to", "session", "from the beginning"):  # fmt: skip
        assert text.count(guess) == 1
    assert "line 1, line 2, line 3, line 4, line 5" in text


def test_a_reply_uses_what_it_replies_to_and_leaves_the_rest(tmp_path: Path) -> None:
    """What lay in front of the sender and was not replied to is delayed."""
    text = "id,from,to,at,reply_to\np,user,a,0,\nq,user,a,1,\nr,a,b,2,q\n"
    assert edges(read(tmp_path, text)) == {
        ("p", "turn-1", "delay"), ("q", "turn-1", "consume"), ("turn-1", "r", None),
    }  # fmt: skip


def test_a_second_reply_to_the_same_is_shown_it_again(tmp_path: Path) -> None:
    text = "id,from,to,at,reply_to\np,user,a,0,\nr,a,b,1,p\ns,a,b,2,p\n"
    imported = read(tmp_path, text)
    assert ("p", "turn-2", "consume") in edges(imported)
    assert any("shown to it again: p for s" in guess for guess in imported.guesses)


def test_a_notice_that_no_message_replies_to_reaches_nobody(tmp_path: Path) -> None:
    """Else statuses would lie beside the messages of all later requests (CLA)."""
    text = (
        "id,from,to,at,reply_to,type\np,user,a,0,,\nr,a,b;c,1,p,notice\ns,b,a,2,r,\n"
        "n,a,b;c,3,s,notice\n"
    )
    imported = read(tmp_path, text)
    assert ("r", "turn-2", "consume") in edges(imported)
    assert graph(imported).event("r").copies.keys() == {"c"}
    assert (graph(imported).event("n").copies, graph(imported).event("n").flight) == ({}, {})
    assert any("replies to reached nobody" in guess for guess in imported.guesses)


def test_a_reply_to_what_is_not_there_is_told(tmp_path: Path) -> None:
    text = "id,from,to,at,reply_to\nr,a,b,1,gone\n"
    imported = read(tmp_path, text)
    assert any("was not sent before" in guess for guess in imported.guesses)
    assert edges(imported) == {("turn-1", "r", None)}


def test_messages_out_of_order_are_sorted(tmp_path: Path) -> None:
    lines = CHAT.splitlines()
    found = read(tmp_path, "\n".join([lines[0], *reversed(lines[1:])]))
    assert any("sorted" in guess for guess in found.guesses)
    assert graph(found).is_accepted("e")


def test_a_message_to_agents_and_outside_is_no_answer(tmp_path: Path) -> None:
    text = "id,from,to,at,reply_to\np,user,a,0,\nr,a,b;user,1,p\n"
    imported = read(tmp_path, text)
    assert not graph(imported).is_accepted("r")
    assert any("to nobody else" in guess for guess in imported.guesses)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", None, "holds no message"),
        ("hello\n", None, "holds no message"),
        ("to,at\nx,1\n", 2, "does not say who sent it"),
        ("from,to\nx,y,z\n", 2, "more columns"),
        ("from,to,at\na,b,soon\n", 2, "no time"),
        ("from,to,at\na,b,nan\n", 2, "no time"),
        ("from,to,at\na,b,1e99\n", 2, "no time"),
        ("id,from,to\nx,a,b\nx,a,b\n", 3, "is used in line 2 as well"),
        ("id,from,to\nsystem,a,b\n", 2, "`system`"),
        ("from,to\nsystem,b\n", 2, "`system`"),
        ("from,to\na;b,c\n", 2, "more than one sender"),
        ('from,to\n"a,b\n', 1, "no CSV"),
        ("[1]", 1, "must be a JSON object"),
        ('{"messages": 3}', None, "must be a list"),
        ('{"from": "a"}\n{', 2, "no JSON"),
        ("[" * 100_000, 1, "nested too deeply"),
        ('[{"from": "a", "content": 1e999}]', 1, "no number for"),
    ],
)
def test_what_is_no_log_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, reason: str
) -> None:
    with pytest.raises(TraceError) as error:
        read(tmp_path, text)
    assert (error.value.line, reason in error.value.reason) == (line, True), error.value


def test_any_log_becomes_a_trace_that_keeps_the_rules(tmp_path: Path) -> None:
    """Senders, recipients, replies and times at random: the records always fit each other."""
    rng = random.Random(5)
    people = ["user", "", "ann", "bob", "cyd", "*", "ghost"]
    for _ in range(150):
        count = rng.randint(1, 12)
        rows = [
            {
                "id": f"m{i}",
                "from": rng.choice(people[:5]),
                "to": rng.sample(people, rng.randint(0, 3)),
                "at": rng.choice([rng.randint(0, 5), None]),
                "reply_to": [f"m{rng.randrange(count)}" for _ in range(rng.randint(0, 2))],
                "type": rng.choice(["notice", "message"]),
            }
            for i in range(count)
        ]
        found = graph(read(tmp_path, json.dumps(rows), "log.json"))
        assert found.finished is not None
        made = [name for name in found.history.event_ids if not name.startswith("onward-")]
        assert made == sorted(made, key=[row["id"] for row in _by_time(rows)].index)


def _by_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in order of time; one without a time has that of the row before."""
    last = min((row["at"] for row in rows if row["at"] is not None), default=0)
    times = [last := last if row["at"] is None else row["at"] for row in rows]
    return [row for _, row in sorted(zip(times, rows, strict=True), key=lambda pair: pair[0])]
