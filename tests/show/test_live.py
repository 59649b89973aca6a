"""The live view, on terminals of all sizes and on none."""

from __future__ import annotations

import io
import random
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dig.graph.codec import decode
from dig.graph.records import (
    Deliver,
    Emit,
    End,
    Fate,
    FindingRow,
    Finish,
    HealRow,
    IncidentRow,
    Record,
    Run,
    Start,
)
from dig.graph.words import NOTHING_TO_DO
from dig.show.terminal import live
from dig.show.terminal.live import LiveView, print_summary
from dig.show.terminal.picture import draw
from dig.show.terminal.terminal_state import TerminalState
from tests.histories import arrive, end, start, trace, turn
from tests.random_traces import random_trace

HOSTILE = "\x1b]0;pwned\x07\x1b[2J[red]r[/red]\u202e\nnext\r\x9b31m"


class Terminal(io.StringIO):
    """Something that is a terminal, as far as anybody can tell."""

    def isatty(self) -> bool:
        return True


def terminal(width: int = 80, height: int = 24, **settings: Any) -> tuple[Console, Terminal]:
    screen = Terminal()
    environment = {"TERM": "xterm", **settings.pop("environment", {})}
    console = Console(
        file=screen, width=width, height=height, _environ=environment, **settings
    )  # fmt: skip
    return console, screen


def pipe() -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=80, _environ={}), file


def random_records(seed: int, **settings: Any) -> list[Record]:
    return [decode(row) for row in random_trace(random.Random(seed), **settings)]


def story(*names: str, text: str = "ok") -> list[Record]:
    """A run in which everything that is worth telling happens once; `names` are its agents."""
    me, events = names[0], {"event": "e2"}
    lists = {"unresolved": ["e1", text], "uncovered": []}
    return [
        Run(0, 0, "demo", names),
        Emit(1, 0, "e1", None, (me,), "problem"),
        Deliver(2, 0, "e1", me),
        Start(3, 500_000, "a1", me, ("e1",)),
        End(4, 1_500_000, "a1", error=text),
        Start(5, 2_000_000, "a2", me, ("e1",)),
        End(6, 4_000_000, "a2", (Fate("e1", "consume"),), ("e2",)),
        Emit(7, 4_000_000, "e2", "a2", (), "solution", True, text),
        FindingRow(8, 4_000_000, "ET", None, events, lists),
        HealRow(9, 4_000_000, 8, "inject", "e2", None, text),
        IncidentRow(10, 4_000_000, "failed", {"who": "detector X", "what": text}),
        Deliver(11, 4_000_000, "e2", None),
        Finish(12, 4_000_000, "submitted", text),
    ]


def picture(records: Iterable[Record], width: int = 80, height: int = 24, us: int = 0) -> list[str]:
    scene = TerminalState()
    for record in records:
        scene.follow(record)
    lines = draw("demo", scene.frame(us), width, height)
    assert len(lines) <= height
    assert all(line.cell_len <= width and "\n" not in line.plain for line in lines)
    return [line.plain.rstrip() for line in lines]


def printed(records: Iterable[Record]) -> str:
    console, file = pipe()
    with LiveView(console, title="demo") as view:
        for record in records:
            view(record)
    return file.getvalue()


# -- the picture ---


def test_a_picture_tells_the_story() -> None:
    """What an agent does, what it did when, what was found, and what was done about it."""
    lines = picture(story("ann", "bob"))
    assert lines == [
        "demo                                                            submitted, 4.0 s",
        "13 records, 2 events, 0 open, 2 turns (1 failed), 1 finding (1 error), 1 healed",
        "4.0 s: early termination (ET): an answer was submitted before all of its work",
        "was done. The monitor added a note to a message. An answer was accepted after\u2026",
        "failed: detector X",
        "agent  now             holds  last 8 s, 0.25 s a cell          turns  sent fails",
        "ann    idle                -  ░░━━━━!░━━━━━━━━S                    2     1     1",
        "bob    idle                -  ·················                    0     0     0",
        "system over                -  e···············A",
        "━ thinks ░ holds > sends c reads w waits r reroutes d drops S submits ! fails",
        "system: e event from outside F finding H healed A answer accepted i incident",
        "held      nothing",
        "released  e2 solution, ann → outside",
        "── findings, healing, failures " + "─" * 49,
        "    1.5 s  failure   ann failed: ok",
        "    4.0 s  answer    ann submits e2",
        "    4.0 s  ET        error: answer e2 was submitted too early; still open: e1,",
        "                     ok",
        "    4.0 s  healing   put a note beside e2",
        "    4.0 s  incident  detector X failed: ok",
        "    4.0 s  answer    e2 is accepted",
        "    4.0 s  end       the run is over: submitted",
    ]


def test_a_picture_says_what_the_agents_have_used() -> None:
    """Tokens sent and received, requests and money so far, as the activations tell of them."""
    usage = {"model": "m", "model_calls": 2, "failed_calls": 1, "input_tokens": 1000}
    usage |= {"output_tokens": 100, "cost_usd": 0.02}
    told = [replace(r, usage=usage) if isinstance(r, End) else r for r in story("ann")]
    said = "cost: 2,200 tokens (2,000 sent, 200 received), $0.0400, 4 requests to a model, 2 failed"
    assert said in picture(told, width=100)


def test_a_line_that_no_record_tells_is_shown_in_the_picture_and_in_plain_lines() -> None:
    """At the time of the latest record or later, made safe, and with its last words."""
    line = "a request of ann failed: says 400: \x1b[31m" + "x" * 450 + " the end"
    console, file = pipe()
    with LiveView(console, title="demo") as view:
        for record in story("ann")[:4]:
            view(record)
        view.tell(line)
    (plain,) = file.getvalue().splitlines()
    assert re.match(r" *\d+\.\d s  model     a request of ann failed: says 400: ", plain)
    assert plain.endswith("x the end") and "\x1b" not in plain
    console, screen = terminal()
    with LiveView(console, title="demo") as view:
        view(story("ann")[0])
        view.tell(line)
    assert "a request of ann failed" in screen.getvalue()
    assert "the live view failed" not in screen.getvalue()


def test_the_error_of_a_request_is_told_once() -> None:
    """The turn that it was for fails in a line without the same words; another error has them."""
    rows = [*arrive(0, "p", None, "a"), start(1, "v", "a", "p"), end(2, "v", p="delay"),
            start(3, "w", "a", "p"), end(4, "w", p="delay")]  # fmt: skip
    records = [decode(one) for one in trace(*rows)]
    why, another = f"says 400: {'x ' * 400}", "ValueError: no"
    errors = iter([f"ModelError: {why}"[:297] + "...", another])
    console, file = pipe()
    with LiveView(console, title="demo") as view:
        for record in records:
            if isinstance(record, End):
                error = next(errors)
                if error != another:
                    view.tell(f"a request of a failed, the activation fails: {why}")
                record = replace(record, error=error)
            view(record)
    told = [line.split("failure")[1].strip() for line in file.getvalue().splitlines()
            if "failure" in line]  # fmt: skip
    assert told == ["a failed", f"a failed: {another}"]


def test_a_failed_turn_is_told_by_its_own_line() -> None:
    """The finding about it has the same words; it counts, and is no news."""
    rows = [*arrive(0, "p", None, "a"), start(1, "v", "a", "p"),
            end(2, "v", p="delay") | {"error": "ValueError: no"}]  # fmt: skip
    records = [*(decode(one) for one in trace(*rows))]
    evidence = {"agent": "a", "error": "ValueError: no"}
    finding = FindingRow(
        len(records), records[-1].us, "FAIL", "turn", {"activation": "v"}, evidence, "notice"
    )
    console, file = pipe()
    with LiveView(console, title="demo") as view:
        for record in (*records, finding):
            view(record)
    (told,) = [line for line in file.getvalue().splitlines() if "ValueError" in line]
    assert told.endswith("failure   a failed: ValueError: no")
    assert "1 finding (1 notice)" in "".join(picture([*records, finding]))


def test_a_step_of_healing_without_a_deed_is_no_news() -> None:
    """It stands in the trace for a replay alone."""
    rows = [*arrive(0, "p", None, "a")]
    records = [*(decode(one) for one in trace(*rows))]
    t, us = len(records), records[-1].us
    finding = FindingRow(t, us, "DL", None, {}, {}, "error")
    refusals = [
        HealRow(t + 1 + n, us, t, "refused", reason=reason)
        for n, reason in enumerate([NOTHING_TO_DO, "the budget is used up"])
    ]
    console, file = pipe()
    with LiveView(console, title="demo") as view:
        for record in (*records, finding, *refusals):
            view(record)
    told = [line for line in file.getvalue().splitlines() if "healing" in line]
    assert [line.split("healing")[1].strip() for line in told] == [
        "did nothing: the budget is used up"
    ]


def test_clocks_tick_between_records() -> None:
    """A picture of a later moment shows an agent thinking for longer."""
    lines = picture(story("ann")[:4], us=7_300_000)
    assert lines[0].endswith("running, 7.3 s")
    assert lines[5].startswith("ann    thinking 6.8 s      1")


def test_while_a_team_stands_still_the_picture_says_since_when_and_until_when() -> None:
    """With the moment at which that becomes a deadlock; before and after that it says nothing."""
    rows = [
        *arrive(0, "p", None, "a"),
        *turn(1, "v", "a", "q", p="consume"),
        *arrive(1, "q", "v", "b", "part"),
        *turn(2, "w", "b", "", q="delay"),
    ]
    records = [decode(one) for one in trace(*rows)]
    (said,) = [line for line in picture(records, us=9_000_000) if "no agent has got on" in line]
    assert said.startswith("9.0 s: no agent has got on with the work since 1.0 s.")
    whole = " ".join(picture(records, us=9_000_000))
    assert "At 16 min 41 s the monitor takes that for a deadlock (DL)." in whole
    for us in (2_500_000, 1_001_000_000):
        assert "no agent has got on" not in " ".join(picture(records, us=us))


def test_an_event_on_its_way_is_held() -> None:
    """Between its generation and its delivery an event stands in the line of its own."""
    assert "held      e1 problem, outside → ann" in picture(story("ann")[:2])
    held = [line for line in picture(story("ann")[:9]) if line.startswith("held")]
    assert held == ["held      e2 solution, ann → outside"]


@given(st.integers(), st.integers(1, 200), st.integers(1, 60), st.integers(1, 100))
def test_any_trace_fits_any_terminal(seed: int, width: int, height: int, agents: int) -> None:
    """No line is wider than the terminal, and no picture higher."""
    records = random_records(seed, agents=agents)
    picture(records, width, height)
    picture(records[: seed % len(records)], width, height, us=10**12)


def test_a_hundred_agents_fit() -> None:
    """The agents for whom there is no line are counted in one."""
    names = [f"agent-{n}" for n in range(100)]
    lines = picture([Run(0, 0, "demo", tuple(names))], 80, 24)
    shown = [line for line in lines if line.startswith("agent-")]
    assert len(shown) >= 6
    assert f"{100 - len(shown)} more: {100 - len(shown)} idle" in lines
    assert any(line.startswith("system") for line in lines)


def test_wide_characters_fit() -> None:
    """A line is measured in cells, not in characters."""
    picture(story("数える人" * 20, "émile", text="長い" * 400), 80, 24)
    picture(story("数える人" * 20, "émile", text="長い" * 400), 41, 12)


@given(st.text(min_size=1), st.text(min_size=1), st.text())
def test_no_text_from_outside_reaches_the_terminal_raw(one: str, two: str, text: str) -> None:
    """Names, payloads and errors hold nothing that a terminal would obey."""
    names = dict.fromkeys(f"{name}{HOSTILE}"[:60] for name in (one, two))
    for line in picture(story(*names, text=text + HOSTILE)):
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line)


# -- on a terminal ---


def show(records: Iterable[Record], console: Console) -> None:
    with LiveView(console, title=HOSTILE) as view:
        for record in records:
            view(record)


def test_hostile_text_is_shown_as_it_is() -> None:
    """Escapes and direction marks become visible; markup is no markup."""
    console, screen = terminal(200, 40)
    show(story("ann" + HOSTILE, text=HOSTILE), console)
    shown = screen.getvalue()
    assert "\x1b]" not in shown and "\x1b[2J" not in shown and "\u202e" not in shown
    assert "[red]r[/red]" in shown


def test_the_terminal_is_given_back() -> None:
    """The alternate screen is left, the cursor is back, and the last picture stays."""
    console, screen = terminal(color_system=None)

    def interrupted() -> None:
        with LiveView(console, title="demo", agents=["ann"]) as view:
            view(story("ann")[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    before, after = screen.getvalue().split("\x1b[?1049l")
    assert "\x1b[?1049h" in before and "\x1b[?25h" in before + after
    assert "ann" in after and "1 record" in after


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"COLORTERM": "truecolor"}])
def test_colour_is_a_matter_of_taste(environment: dict[str, str]) -> None:
    """With NO_COLOR there is no colour, and no word is lost by it."""
    console, screen = terminal(environment=environment)
    show(story("ann"), console)
    colours = re.findall(r"\x1b\[[0-9;]*3[0-7]m", screen.getvalue())
    assert bool(colours) is ("NO_COLOR" not in environment)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "error: answer e2 was submitted too early; still open: e1," in plain


def test_notices_and_silenced_findings_are_no_alarm() -> None:
    """They are told apart in words and in style, and counted apart."""
    state = TerminalState()
    for record in story("ann")[:8]:
        state.follow(record)
    rows = [
        FindingRow(8, 4_000_000, "RSP", None, {}, {}, "notice"),
        FindingRow(9, 4_000_000, "OE", None, {}, {}, "error", "the audit log is no work"),
    ]
    lines = [line for row in rows for line in state.follow(row)]
    assert [line.style for line in lines] == ["notice", "silenced"]
    assert lines[0].text.startswith("notice: ")
    assert lines[1].text.startswith("silenced: the audit log is no work: ")
    assert "2 findings (1 notice, 1 silenced)" in state.frame(0).counts


def test_what_others_print_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal it would tear the picture, so it is kept until the end."""
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    out, err = sys.stdout, sys.stderr
    assert isinstance(out, Terminal) and isinstance(err, io.StringIO)
    console, _ = terminal()
    with LiveView(console, title="demo"):
        print("a word from an agent")
        print("a word for a file", file=sys.stderr)
        assert (out.getvalue(), err.getvalue()) == ("", "a word for a file\n")
    assert out.getvalue() == "a word from an agent\n"
    assert (sys.stdout, sys.stderr) == (out, err)


def test_painting_never_meets_a_half_changed_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records come in while another thread paints as fast as it can."""
    monkeypatch.setattr(live, "FRAMES_PER_S", 10_000)
    for seed in range(5):
        console, screen = terminal()
        show(random_records(seed, length=400, agents=30), console)
        assert "the live view failed" not in screen.getvalue()


# -- where there is no terminal ---


def test_without_a_terminal_there_is_a_line_for_what_is_worth_telling() -> None:
    """No painting, no escape codes, no wrapping; each line begins with the time."""
    assert printed(story("ann")).splitlines() == [
        "    1.5 s  failure   ann failed: ok",
        "    4.0 s  answer    ann submits e2",
        "    4.0 s  ET        error: answer e2 was submitted too early; still open: e1, ok",
        "    4.0 s  healing   put a note beside e2",
        "    4.0 s  incident  detector X failed: ok",
        "    4.0 s  answer    e2 is accepted",
        "    4.0 s  end       the run is over: submitted",
    ]


@given(st.integers())
def test_any_trace_is_told_in_plain_lines(seed: int) -> None:
    """One line for each finding, whatever the run does."""
    records = random_records(seed, length=150)
    lines = printed(records).splitlines()
    for kind, word in ((FindingRow, "about"), (IncidentRow, "incident")):
        assert sum(word in line for line in lines) == sum(isinstance(r, kind) for r in records)
    assert all(re.match(r" *\d+\.\d s  \S", line) for line in lines)


def test_plain_lines_are_safe() -> None:
    """Not even a line break gets through."""
    out = printed(story("ann" + HOSTILE, text=HOSTILE * 100))
    assert len(out.splitlines()) == 7
    assert out.isascii() or not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", out)
    assert "\x1b" not in out


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"FORCE_COLOR": "1"}])
def test_what_cannot_be_painted_on_gets_plain_lines(environment: dict[str, str]) -> None:
    """A dumb terminal; a file that is to have colours, such as the log of a CI job."""
    file = Terminal() if "TERM" in environment else io.StringIO()
    show(story("ann"), Console(file=file, width=80, _environ=environment))
    assert len(file.getvalue().splitlines()) == 7
    assert "\x1b[?" not in file.getvalue()


# -- when something goes wrong ---


def test_a_terminal_without_unicode_is_good_enough() -> None:
    """What it cannot show is replaced by as many characters that it can."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, "ascii", write_through=True)
    file.isatty = lambda: True  # type: ignore[method-assign]
    console = Console(file=file, width=80, height=24, color_system=None, _environ={"TERM": "vt"})
    show(story("émile", text="naïve"), console)
    assert b"?mile  idle                -  ::====!:========S" in raw.getvalue()


def test_a_view_that_fails_does_not_stop_the_run() -> None:
    """A sink that raised would end the run."""
    console, file = pipe()
    with LiveView(console, title="demo") as view:
        view(story("ann")[3])  # no run begins like that
        view(story("ann")[0])
    assert file.getvalue().startswith("the live view failed, the run did not: ")


def test_nobody_has_to_read_it() -> None:
    """A full disk, or a reader that has gone, does not stop the run."""

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("no space left")

    show(story("ann"), Console(file=Full(), width=80, _environ={}))


def test_a_summary_is_wrapped_beside_its_labels() -> None:
    """No line is wider than the terminal; a path can be copied out of it."""
    console, file = pipe()
    print_summary(console, [("outcome", "long " * 40), ("trace", "[red]runs/" + "x" * 90)])
    lines = file.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("outcome  long long") and lines[1].startswith("         long")
    assert "[red]runs/" in file.getvalue()
