"""Sessions of Claude Code: what was said to whom, what was read, and what nobody read."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dig.detectors import standard
from dig.errors import TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, Emit, End, IncidentRow, Join, Start
from dig.show.gate.checked import CheckedRun, check_run
from dig.show.gate.quality_gate import QualityGate
from dig.show.gate.reports import CheckReport, text_lines
from dig.traces.interchange.imports import Imported, foreign_format, import_file, save
from dig.traces.verify import verify

from . import coding
from .coding import Talk, at, background, foreground, notification, store, subagent, write


def checked(path: Path) -> CheckedRun:
    return check_run(path, standard())


def raised(path: Path) -> list[tuple[str, str]]:
    return [(c.finding.pattern, c.finding.severity) for c in checked(path).findings]


def alarms(path: Path) -> list[str]:
    return [pattern for pattern, severity in raised(path) if severity != "notice"]


def unread(path: Path) -> list[str]:
    found = [c.finding for c in checked(path).findings if c.is_unhealed]
    return [event for finding in found for event in finding.evidence["unresolved"]]


def graph(imported: Imported) -> InteractionGraph:
    return InteractionGraph.of(imported.records)


def ended(imported: Imported) -> list[tuple[str, str | None, bool]]:
    agents = {r.activation: r.agent for r in imported.records if isinstance(r, Start)}
    ends = [record for record in imported.records if isinstance(record, End)]
    return [(agents[end.activation], end.error, end.cancelled) for end in ends]


def answers(imported: Imported) -> list[Any]:
    accepted = {r.event for r in imported.records if isinstance(r, Deliver) and r.to is None}
    emits = [record for record in imported.records if isinstance(record, Emit)]
    return [emit.payload for emit in emits if emit.event in accepted]


def told(imported: Imported) -> str:
    return " | ".join(imported.guesses)


# --- healthy sessions ---


def test_a_foreground_subagent_is_a_call_whose_report_its_caller_uses(tmp_path: Path) -> None:
    """Turns begin and end as they did; both calls of one message are outputs of one activation."""
    imported = import_file(foreground(tmp_path))
    assert imported.format == "claude-code"
    edges = {(a, b) for a, b in graph(imported).to_networkx().edges if "onward" not in a + b}
    auth, cache = "Explore's {}: Review auth (a1)", "Explore#2's {}: Review cache (a2)"
    assert edges == {
        ("request-1", "turn-1"), ("turn-1", auth.format("task")), ("turn-1", cache.format("task")),
        (auth.format("task"), "turn-2"), ("turn-2", auth.format("report")),
        (cache.format("task"), "turn-3"), ("turn-3", cache.format("report")),
        (auth.format("report"), "turn-4"), (cache.format("report"), "turn-4"),
        ("turn-4", "answer-1"),
    }  # fmt: skip
    assert answers(imported) == ["Both are fine."]
    times = {r.activation: r.us / 1e6 for r in imported.records if isinstance(r, Start)}
    assert times == {"turn-1": 0, "turn-2": 3, "turn-3": 3, "turn-4": 24}
    usage = [r.usage for r in imported.records if isinstance(r, End)]
    assert [u["input_tokens"] for u in usage] == [20, 20, 20, 10]
    assert any(isinstance(r, Join) and r.agent == "Explore#2" for r in imported.records)
    assert raised(tmp_path / "5e55.jsonl") == []


def test_background_agents_that_were_all_read_raise_nothing(tmp_path: Path) -> None:
    """An answer between the reports is none yet; the last one answers the request."""
    path = background(tmp_path, 5, 0)
    assert raised(path) == []
    assert answers(import_file(path)) == ["The audit is complete."]
    assert "is none yet" in told(import_file(path))


@pytest.mark.parametrize("has_answer", [True, False])
def test_a_subagent_for_each_of_many_files_is_no_alarm(has_answer: bool, tmp_path: Path) -> None:
    """A main agent goes round with its subagents as often as there is work."""
    main, others = Talk().user("Fix every file"), []
    for n in range(60):
        main.spawn(f"c{n}", f"Fix file {n}")
        others.append(subagent(f"a{n}", f"Do: Fix file {n}", main.seconds, f"file {n} is fixed"))
        facts = {"status": "completed", "agentId": f"a{n}"}
        main.result(f"c{n}", f"file {n} is fixed", others[-1].seconds + 1, facts=facts)
    path = store(tmp_path, main.say("All are fixed.") if has_answer else main, *others)
    assert raised(path) == [("LIVELOCK", "notice")]


def test_two_requests_have_two_answers(tmp_path: Path) -> None:
    talk = Talk().user("One?").say("One.").user("Two?").say("Two.")
    path = store(tmp_path, talk)
    assert (raised(path), answers(import_file(path))) == ([], ["One.", "Two."])
    assert [r.us for r in import_file(path).records if isinstance(r, End)] == [1e6, 3e6]


@pytest.mark.parametrize("tool", ["TaskOutput", "AgentOutputTool"])
def test_a_report_is_read_by_a_tool_too_but_not_before_it_is_there(
    tool: str, tmp_path: Path
) -> None:
    main = Talk().user("Look").spawn("c1", "Look", run_in_background=True).launched("c1", "a1")
    main.use("o1", tool, task_id="a1").result("o1", "<retrieval_status>timeout</retrieval_status>")
    assert unread(store(tmp_path / "1", copy_of(main).say("Late."))) == [
        "Explore's task: Look (a1)"
    ]
    main.use("o2", tool, task_id="a1").result("o2", "<status>completed</status> found")
    path = store(tmp_path / "2", main.say("Done."), subagent("a1", "Do: Look", 3))
    assert (raised(path), answers(import_file(path))) == ([], ["Done."])


def copy_of(talk: Talk) -> Talk:
    copy = Talk()
    copy.rows, copy.seconds = [*talk.rows], talk.seconds
    return copy


def test_a_report_is_read_in_its_file_once_the_agent_has_ended(tmp_path: Path) -> None:
    main = Talk().user("Look").spawn("c1", "Look", run_in_background=True).launched("c1", "a1")
    early = copy_of(main).use("r", "Read", file_path="/tmp/tasks/a1.output").result("r", "..")
    assert alarms(store(tmp_path / "1", early.say("Done."), subagent("a1", "Do: Look", 100))) == [
        "ET"
    ]
    late = copy_of(main).use("r", "Read", 50, file_path="/tmp/tasks/a1.output").result("r", "..")
    assert raised(store(tmp_path / "2", late.say("Done."), subagent("a1", "Do: Look", 3))) == []


def test_a_notification_in_the_middle_of_a_turn_is_read(tmp_path: Path) -> None:
    """It comes as an attachment; that it waits in the queue is not enough."""
    main = Talk().user("Look").spawn("c1", "Look", run_in_background=True).launched("c1", "a1")
    text = notification("a1", "found")
    main.row("queue-operation", operation="enqueue", content=text)
    assert alarms(
        store(tmp_path / "1", copy_of(main).say("Done."), subagent("a1", "Do: Look", 3))
    ) == ["ET"]
    main.use("t", "Bash", command="ls").row(
        "attachment", attachment={"type": "queued_command", "prompt": text}
    )
    main.result("t", "..").say("Done.")
    assert raised(store(tmp_path / "2", main, subagent("a1", "Do: Look", 3))) == []


def test_older_sessions_have_their_subagents_in_the_same_file(tmp_path: Path) -> None:
    """Sidechains are told apart by their roots, and belong to the call with their prompt."""
    main = Talk().user("Look").spawn("c1", "A", type="Plan").spawn("c2", "B", type="Plan")
    sides = [
        Talk(f"s{n}").user(f"Do: {w}", 4 + n).say(f"{w} is done", 8 + n) for n, w in enumerate("BA")
    ]
    rows = [
        *main.rows,
        *(row for pair in zip(*(side.rows for side in sides), strict=True) for row in pair),
    ]
    for row in rows:
        row.pop("agentId", None)
    after = Talk()
    after.rows, after.seconds = [*rows], 10
    after.result("c1", "A is done").result("c2", "B is done").say("Done.")
    imported = import_file(path := write(tmp_path / "s.jsonl", after.rows))
    assert raised(path) == []
    assert [(a, e) for a, e, _ in ended(imported)] == [
        ("main", None),
        ("main", None),
        ("Plan#2", None),
        ("Plan", None),
        ("main", None),
    ]
    assert {r.us for r in imported.records if isinstance(r, End)} >= {7_000_000, 8_000_000}


def test_progress_rows_stand_for_a_subagent_without_a_file(tmp_path: Path) -> None:
    main = Talk().user("Look").spawn("c1", "Look")
    content = [{"type": "text", "text": "found"}]
    message = {"id": "x", "content": content, "usage": {"input_tokens": 7}}
    inner = {"type": "assistant", "message": message}
    main.row(
        "progress",
        data={"type": "agent_progress", "agentId": "a1", "message": inner},
        parentToolUseID="c1",
    )
    main.result("c1", "found", facts={"agentId": "a1"}).say("Done.")
    imported = import_file(store(tmp_path, main))
    assert [r.usage["input_tokens"] for r in imported.records if isinstance(r, End)] == [10, 7, 10]


def test_a_nested_subagent_is_called_by_the_one_that_started_it(tmp_path: Path) -> None:
    main = (
        Talk()
        .user("Look")
        .spawn("c1", "Outer", type="outer")
        .result("c1", "ok", 30, facts={"agentId": "a1"})
        .say("Done.")
    )
    outer = (
        Talk("a1")
        .user("Do: Outer", 3)
        .spawn("n1", "Inner", type="inner")
        .result("n1", "in", 20, facts={"agentId": "a2"})
        .say("ok")
    )
    path = store(tmp_path, main, outer, subagent("a2", "Do: Inner", 6))
    assert raised(path) == []
    emits = {r.event: r.to for r in import_file(path).records if isinstance(r, Emit)}
    assert emits["inner's report: Inner (a2)"] == ("outer",)


def test_teammates_report_by_messages(tmp_path: Path) -> None:
    """The message of a teammate is its report; what the program says for it is a notice."""
    main = (
        Talk()
        .user("Work")
        .use("c1", "Agent", name="rev", team_name="t", description="Review", prompt="Go")
    )
    main.result(
        "c1", "Spawned", facts={"status": "teammate_spawned", "teammate_id": "rev@t", "name": "rev"}
    )
    main.say("They work.")
    assert unread(store(tmp_path / "1", copy_of(main))) == ["rev's task: Review (rev@t)"]
    mail = {"type": "teammate_mailbox", "messages": [{"from": "rev", "text": "All is well"}]}
    posted = copy_of(main).row("attachment", attachment=mail).say("Good.")
    assert raised(store(tmp_path / "3", posted)) == []
    for body in ("All is well", '{"type":"idle_notification","from":"rev"}'):
        main.user(
            f'<teammate-message teammate_id="rev" color="blue">\n{body}\n</teammate-message>'
        ).say("Good.")
    path = store(tmp_path / "2", main)
    assert (raised(path), answers(import_file(path))) == ([], ["Good."])


def test_a_workflow_in_the_background_is_a_call_as_well(tmp_path: Path) -> None:
    main = Talk().user("Sweep").use("w1", "Workflow", scriptPath="/repo/sweep.js")
    facts = {"isAsync": True, "status": "async_launched", "taskId": "task9", "runId": "wf9"}
    main.result("w1", "Workflow launched in background. Task ID: task9", facts=facts).say(
        "It runs."
    )
    assert unread(store(tmp_path / "1", copy_of(main))) == ["Workflow's task: (task9)"]
    assert raised(store(tmp_path / "2", main.notified("task9", "swept").say("Swept."))) == []


def test_messages_without_ids_and_rows_of_results_are_read(tmp_path: Path) -> None:
    """So some programs write them again; a tool without a result had one if it goes on."""
    main = (
        Talk()
        .user("Look")
        .spawn("c1", "A")
        .result("c1", "Agent spawned")
        .spawn("c2", "B")
        .say("Done.")
    )
    for row in main.rows:
        row["message"].pop("id", None)
        if (
            row["message"]["content"][0] != "L"
            and row["message"]["content"][0]["type"] == "tool_result"
        ):
            row["type"] = "tool_result"
    path = store(tmp_path, main)
    assert (raised(path), answers(import_file(path))) == ([], ["Done."])


def test_a_text_before_a_tool_that_the_file_lacks_is_no_answer(tmp_path: Path) -> None:
    talk = Talk().user("Look").say("I look.")
    talk.rows[-1]["message"]["stop_reason"] = "tool_use"
    assert answers(import_file(store(tmp_path, talk))) == []


def test_a_resumed_agent_reports_twice(tmp_path: Path) -> None:
    main = Talk().user("Look").spawn("c1", "Look").result("c1", "half", 20, facts={"agentId": "a1"})
    main.use("s1", "SendMessage", to="a1", message="the other half")
    main.result("s1", "Resuming agent a1", facts={"success": True, "resumedAgentId": "a1"}).say(
        "It goes on."
    )
    side = subagent("a1", "Do: Look", 3, "half").user("the other half", 24).say("whole")
    assert alarms(store(tmp_path / "1", copy_of(main), side)) == ["ET"]
    path = store(tmp_path / "2", main.notified("a1", "whole").say("Done."), side)
    assert raised(path) == []
    assert [agent for agent, _, _ in ended(import_file(path))].count("Explore") == 2


def test_commands_of_the_terminal_are_no_requests(tmp_path: Path) -> None:
    talk = (
        Talk()
        .user("<command-name>/model</command-name>")
        .user("<local-command-stdout>kept</local-command-stdout>")
    )
    talk.user("<command-message>x</command-message><command-name>/x</command-name>").say("Done.")
    talk.user("ignored", isMeta=True).user("This session is being continued", isCompactSummary=True)
    assert answers(import_file(store(tmp_path, talk))) == ["Done."]
    assert (
        len(
            [
                e
                for e in graph(import_file(tmp_path / "5e55.jsonl")).history.event_ids
                if "request" in e
            ]
        )
        == 1
    )


def test_a_prompt_that_quotes_a_notification_is_a_prompt(tmp_path: Path) -> None:
    main = Talk().user("Look").spawn("c1", "Look", run_in_background=True).launched("c1", "a1")
    main.say("Wait.").user(f"What is this? {notification('a1', 'found')}").say("A notification.")
    assert alarms(store(tmp_path, main, subagent("a1", "Do: Look", 3))) == ["ET"]


def test_an_interruption_of_a_text_or_of_nothing_is_no_answer(tmp_path: Path) -> None:
    stop = "[Request interrupted by user]"
    talk = (
        Talk().user(stop).user("One?").say("One is").user(stop).user(stop).user("Two?").say("Two.")
    )
    imported = import_file(store(tmp_path, talk))
    assert answers(imported) == ["Two."]
    assert [cancelled for _, _, cancelled in ended(imported)] == [True, False]


# --- sessions that went wrong ---


def test_reports_that_nobody_read_are_an_error_that_names_them(tmp_path: Path) -> None:
    """19 were started, 4 ended and nobody was told: those, and no others."""
    path = background(tmp_path)
    names = [
        f"Explore{'' if n % 2 == 0 else '#2'}'s report: Audit module {n} (a{n})"
        for n in range(15, 19)
    ]
    assert unread(path) == names
    assert raised(path) == [("ET", "error")]
    text = "\n".join(text_lines(CheckReport([QualityGate().judge(checked(path))])))
    assert "The check fails" in text and all(name[:30] in text for name in names)


def test_an_agent_that_never_ended_is_named_by_its_task(tmp_path: Path) -> None:
    main = (
        Talk()
        .user("Look")
        .spawn("c1", "Look", run_in_background=True)
        .launched("c1", "a1")
        .say("Done.")
    )
    path = store(tmp_path, main.user("More?").say("More."), subagent("a1", "Do: Look", 3, None))
    assert unread(path) == ["Explore's task: Look (a1)"]
    assert raised(path) == [("ET", "error")]


def test_a_report_that_goes_to_nobody_is_lost_in_nested_agents_too(tmp_path: Path) -> None:
    main = (
        Talk()
        .user("Look")
        .spawn("c1", "Outer")
        .result("c1", "ok", 30, facts={"agentId": "a1"})
        .say("Done.")
    )
    outer = (
        Talk("a1")
        .user("Do: Outer", 3)
        .spawn("n1", "Inner", run_in_background=True)
        .launched("n1", "a2")
        .say("ok")
    )
    path = store(tmp_path, main, outer, subagent("a2", "Do: Inner", 6))
    assert (raised(path), unread(path)) == ([("ET", "error")], ["Explore#2's report: Inner (a2)"])


@pytest.mark.parametrize("lost", [[], ["a3"], ["a2", "a3"]])
def test_who_called_an_agent_that_has_gone_reads_the_reports_for_it(
    lost: list[str], tmp_path: Path
) -> None:
    """The answer before is none yet; what nobody reads at the end is lost, and nothing else."""
    main = Talk().user("Look").spawn("c1", "Outer")
    main.result("c1", "ok", 30, facts={"agentId": "a1"}).say("Done, turn 1.", 31)
    outer = Talk("a1").user("Do: Outer", 3)
    for agent in ("a2", "a3"):
        outer.spawn(f"n-{agent}", f"Inner {agent}", run_in_background=True)
        outer.launched(f"n-{agent}", agent)
    sides = [subagent(agent, f"Do: Inner {agent}", 40, "found") for agent in ("a2", "a3")]
    main.seconds = 60
    for agent in sorted({"a2", "a3"} - {*lost}):
        main.notified(agent, "found").say(f"Done with {agent}.")
    path = store(tmp_path, main, outer.say("ok", 29), *sides)
    assert {name.split()[-1] for name in unread(path)} == {*lost}
    assert raised(path) == [("ET", "error")] * bool(lost)
    assert len(answers(import_file(path))) == 1


def test_an_interrupted_turn_was_called_off(tmp_path: Path) -> None:
    """With it the subagents that it waited for; what comes after uses what it had."""
    main = (
        Talk().user("Look").spawn("c1", "Look").user("[Request interrupted by user for tool use]")
    )
    path = store(tmp_path, main.user("Go on").say("Done."), subagent("a1", "Do: Look", 3, None))
    imported = import_file(path)
    assert [(agent, cancelled) for agent, _, cancelled in ended(imported)] == [
        ("main", False), ("Explore", True), ("main", True), ("main", False),
    ]  # fmt: skip
    assert (alarms(path), answers(imported)) == ([], ["Done."])


def test_errors_of_subagents_and_of_the_server_are_told(tmp_path: Path) -> None:
    main = (
        Talk()
        .user("Look")
        .spawn("c1", "Look")
        .result("c1", "API Error: 500", error=True)
        .say("It failed.")
    )
    path = store(tmp_path / "1", main)
    assert raised(path) == [("FAIL", "notice"), ("FAIL", "warning")]
    broken = (
        Talk()
        .user("Look")
        .row(
            "assistant",
            isApiErrorMessage=True,
            message={"content": [{"type": "text", "text": "API Error: 529"}]},
        )
    )
    path = store(tmp_path / "2", broken)
    assert ("FAIL", "error") in raised(path)
    assert [
        c.is_mended
        for c in checked(store(tmp_path / "3", broken.user("Go on").say("Done."))).findings
        if c.finding.severity == "error"
    ] == [True]


def test_a_refused_call_never_ran(tmp_path: Path) -> None:
    main = (
        Talk()
        .user("Look")
        .spawn("c1", "Look")
        .result("c1", "The tool use was rejected", error=True)
    )
    imported = import_file(store(tmp_path, main.say("Fine, then not.")))
    assert {agent for agent, _, _ in ended(imported)} == {"main"}


@pytest.mark.parametrize("kind", ["notified", "TaskStop"])
def test_an_agent_that_was_killed_is_not_lost(kind: str, tmp_path: Path) -> None:
    main = Talk().user("Look").spawn("c1", "Look", run_in_background=True).launched("c1", "a1")
    if kind == "notified":
        main.notified("a1", "", "killed")
    else:
        main.use("k", "TaskStop", task_id="a1").result("k", "stopped")
    path = store(tmp_path, main.say("Stopped."), subagent("a1", "Do: Look", 3, None))
    assert alarms(path) == []
    assert ("Explore", True) in [
        (agent, cancelled) for agent, _, cancelled in ended(import_file(path))
    ]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_session_that_stops_in_a_turn_is_cut_off_and_no_deadlock(
    cut: int, tmp_path: Path
) -> None:
    main = Talk().user("Look").spawn("c1", "Look").result("c1", "found", facts={"agentId": "a1"})
    write(tmp_path / "cut.jsonl", main.rows[:cut])
    os.utime(path := tmp_path / "cut.jsonl", (0, 0))
    run = checked(path)
    assert (run.state, run.findings) == ("cut off", [])
    assert "the file stops in it" in told(import_file(path))
    os.utime(path)
    assert checked(path).state == "in progress"


# --- odd files ---


def test_half_a_row_at_the_end_is_left_out_and_a_wrong_one_before_is_named(tmp_path: Path) -> None:
    path = store(tmp_path, Talk().user("One?").say("One."))
    whole = path.read_text()
    path.write_text(whole + '{"type": "user", "mess')
    assert answers(import_file(path)) == ["One."]
    assert "half row" in told(import_file(path))
    path.write_text(whole.replace("\n", '\n{"half\n', 1))
    with pytest.raises(TraceError, match=":2: is no JSON") as error:
        import_file(path)
    assert error.value.line == 2


def test_files_from_windows_are_read(tmp_path: Path) -> None:
    path = foreground(tmp_path)
    expected = [r for r in import_file(path).records if not isinstance(r, IncidentRow)]
    for file in tmp_path.rglob("*.jsonl"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert [r for r in import_file(path).records if not isinstance(r, IncidentRow)] == expected


def test_what_is_empty_or_has_no_turn_is_refused_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", [{"type": "summary", "summary": "x", "leafUuid": "y"}])
    with pytest.raises(TraceError, match="holds no turn of an agent"):
        import_file(path)


def test_secrets_are_masked_and_long_texts_cut(tmp_path: Path) -> None:
    secret = "sk-ant-" + "a1" * 20
    path = store(tmp_path, Talk().user(f"Use {secret}").say("x" * 100_000))
    trace = save(import_file(path), tmp_path / "run").read_text()
    assert secret not in trace and '"$cut"' in trace and len(trace) < 30_000


def test_no_row_is_needed_twice_and_none_has_to_have_a_time(tmp_path: Path) -> None:
    rows = foreground(tmp_path).read_text().splitlines()
    path = write(
        tmp_path / "t.jsonl", [json.loads(row) | {"timestamp": None} for row in [*rows, *rows[:3]]]
    )
    assert raised(path) == []
    assert len(answers(import_file(path))) == 1


@given(st.randoms(use_true_random=False), st.integers(0, 2))
def test_wrong_times_change_nothing_about_what_was_read(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random, lost: int
) -> None:
    """Clocks of the files differ, go back, or are missing: the order of the rows counts."""
    path = background(tmp_path_factory.mktemp("times"), 4, lost)
    for file in [path, *path.parent.rglob("agent-*.jsonl")]:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for row in rows:
            row["timestamp"] = chance.choice(
                [at(chance.uniform(-900, 900)), None, "yesterday", at(0).removesuffix("Z")]
            )
        write(file, rows)
    assert len(unread(path)) == lost
    assert set(alarms(path)) == ({"ET"} if lost else set())


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 2))
def test_rows_in_any_order_are_sorted_by_time(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random, lost: int
) -> None:
    path = background(tmp_path_factory.mktemp("mixed"), 4, lost)
    expected = [r for r in import_file(path).records if not isinstance(r, IncidentRow)]
    for file in [path, *path.parent.rglob("agent-*.jsonl")]:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        write(file, chance.sample(rows, len(rows)))
    mixed = [r for r in import_file(path).records if not isinstance(r, IncidentRow)]
    assert [type(r) for r in mixed] == [type(r) for r in expected]
    assert len(unread(path)) == lost


_ODD = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.randoms(use_true_random=False), st.lists(_ODD, min_size=1, max_size=4))
def test_rows_with_anything_in_them_make_a_valid_trace_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random, odd: list[Any]
) -> None:
    """Values of some keys are replaced, rows are shuffled, left out and doubled."""
    folder = tmp_path_factory.mktemp("odd")
    background(folder, 3, 1)
    for file in folder.rglob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for value in odd:
            row = chance.choice(rows)
            holder = chance.choice([row, row.get("message") or row])
            if isinstance(holder, dict) and holder:
                holder[chance.choice(sorted(holder))] = value
        rows = [row for row in rows if chance.random() > 0.1]
        if chance.random() < 0.5:
            a, b = sorted(chance.choices(range(len(rows) + 1), k=2))
            rows[a:b] = chance.sample(rows[a:b], b - a)
        write(file, rows)
    path = folder / "5e55.jsonl"
    try:
        trace = save(import_file(path, "claude-code"), folder / "run")
    except TraceError as error:
        if "\n" in str(error):
            raise
        return
    assert verify(trace).problems == []
    check_run(trace, standard())


@given(st.randoms(use_true_random=False), st.integers(0, 3), st.booleans())
def test_of_any_session_exactly_the_reports_that_nobody_read_are_named(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random, lost: int, with_files: bool
) -> None:
    """Requests, calls in the foreground and background, and notifications in any order."""
    main, sides, waiting = Talk().user("Begin"), list[Talk](), list[str]()
    for number in range(1, chance.randint(2, 13)):
        kind = chance.choice(("ask", "say", "foreground", "background", "notify", "tool"))
        if kind == "ask":
            main.say(f"So far {number}").user(f"Question {number}")
        elif kind == "say":
            main.say(f"I go on with {number}")
        elif kind == "tool":
            main.use(f"t{number}", "Bash", command="ls").result(f"t{number}", "..")
        elif kind == "notify" and waiting:
            main.notified(waiting.pop(chance.randrange(len(waiting))), "found")
        elif kind in ("foreground", "background"):
            agent = f"a{number}"
            if kind == "background":
                main.spawn(f"c{number}", f"Work {number}", run_in_background=True)
                main.launched(f"c{number}", agent)
                waiting.append(agent)
            else:
                main.spawn(f"c{number}", f"Work {number}")
                main.result(f"c{number}", "found", main.seconds + 20, facts={"agentId": agent})
            sides.append(
                subagent(agent, f"Do: Work {number}", main.seconds - 19 * (kind[0] == "f"))
            )
    missing = waiting[:lost]
    for agent in waiting[lost:]:
        main.notified(agent, "found")
    main.say("The end.", main.seconds + 100)
    path = store(tmp_path_factory.mktemp("any"), main, *(sides if with_files else ()))
    assert {name.partition("(")[2].strip(")") for name in unread(path)} == set(missing)
    assert set(alarms(path)) == ({"ET"} if missing else set())


def test_calls_without_results_in_the_file_are_found_too(tmp_path: Path) -> None:
    """Some exports leave results out: a further message shows that they were there."""
    main = Talk().user("Look").spawn("c1", "A").spawn("b1", "B", run_in_background=True)
    main.spawn("b2", "C", run_in_background=True).say("They work.")
    note = notification("x1", "found").replace("Agent completed", 'Agent "B" completed')
    path = store(tmp_path, main.user(note).say("Done."))
    assert (raised(path), unread(path)) == ([("ET", "error")], ["Explore#3's task: C"])


REAL = os.environ.get("DIG_CODING_AGENTS")


@pytest.mark.skipif(not REAL, reason="DIG_CODING_AGENTS names a directory of real sessions")
def test_real_sessions_are_quiet() -> None:
    """Each is healthy, or somebody stopped it."""
    files = [path for path in Path(REAL or "").rglob("*.json*") if "subagents" not in path.parts]
    formats = {path: foreign_format(path) for path in files}
    assert {"claude-code", "claude-team"} <= set(formats.values())
    for path in (path for path, format in formats.items() if format):
        run = checked(path)
        assert [c.finding for c in run.findings if c.finding.severity != "notice"] == [], path
        assert run.state == "ended", path


def test_the_times_of_the_made_files_are_those_that_they_say() -> None:
    assert at(1.5) == "2026-08-18T09:00:01.500Z"
    assert coding.START.tzinfo is not None
