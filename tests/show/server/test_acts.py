"""What a person writes on the page: rules about false alarms, notes, and nobody else's writes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dig.detectors import standard
from dig.detectors.policy import apply_policy
from dig.detectors.policy_settings import load_policy
from dig.errors import RefusedError
from dig.graph.records import base_name
from dig.show.runs.summary import MOST_NOTE, summarise
from dig.show.server.acts import Acts
from dig.show.server.server import MOST_BODY, Server
from dig.traces.run import RecordedRun
from tests.histories import arrive, row, trace, turn
from tests.oracle import Row
from tests.show.server.client import TOKEN, Response, connected, parse, request, serving
from tests.traces.runs import directory, hasty, late_twice, solved, store

RULE = """[[policy."ET"]]
action = "off"
agents = ["a"]
types = ["solution"]
reason = "a \\"drill\\""
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of a healthy run and of one with a finding, at record 12."""
    directory(tmp_path / "runs", "good", solved())
    directory(tmp_path / "runs", "early", hasty())
    with serving(tmp_path / "runs", settings=tmp_path / "digmon.toml") as server:
        yield server


def post(
    server: Server, path: str, body: object, method: str = "POST", /, **headers: str | None
) -> Response:
    """The response to what the page sends; a header that is `None` is left out."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {
        "Origin": f"http://127.0.0.1:{server.server_port}", "Sec_Fetch_Site": "same-origin",
        "Content_Type": "application/json", "Content_Length": str(len(data)), **headers,
    }  # fmt: skip
    with connected(server) as connection:
        connection.sendall(request(server, f"/{TOKEN}/{path}", method, **given) + data)
        return parse(b"".join(iter(lambda: connection.recv(65536), b"")))


def files(folder: Path) -> dict[str, bytes]:
    """All files and their contents, but for the index, which reading makes, too."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".index.json"]
    return {str(path): path.read_bytes() for path in paths}


def silence(server: Server, **more: Any) -> Response:
    body = {"t": 12, "reason": 'a "drill"', **more}
    return post(server, "run/early/false-alarm", body)


# --- false alarms ---


def test_a_rule_is_shown_before_it_is_written(server: Server, tmp_path: Path) -> None:
    """The first request writes nothing; the second one must have the same text."""
    shown = json.loads(silence(server).body)
    assert shown == {"rule": RULE, "file": str(tmp_path / "digmon.toml"), "is_written": False}
    assert not json.loads(silence(server, shown=RULE.replace("a", "b")).body)["is_written"]
    assert not (tmp_path / "digmon.toml").exists()
    assert json.loads(silence(server, shown=RULE).body)["is_written"]
    assert (tmp_path / "digmon.toml").read_text() == RULE


def test_the_rule_silences_the_finding(server: Server, tmp_path: Path) -> None:
    """Wherever the file is read, for the reason that was written."""
    silence(server, shown=RULE)
    policy = load_policy(tmp_path / "digmon.toml", {})
    run = RecordedRun.read(tmp_path / "runs" / "early", detectors=standard())
    assert run.found
    reasons = [apply_policy(policy, run.graph, finding).silenced for finding in run.found]
    assert reasons == ['a "drill"'] * len(run.found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reason=st.text(min_size=1, max_size=40), agent=st.text(min_size=1, max_size=20))
def test_any_reason_and_any_name_can_be_read_again(tmp_path: Path, reason: str, agent: str) -> None:
    """Or nothing is written: TOML has no place for some characters."""
    file = tmp_path / "digmon.toml"
    file.unlink(missing_ok=True)
    rows = json.loads(json.dumps(hasty()).replace('"a"', json.dumps(agent)))
    store(tmp_path / "t.dig.jsonl", rows)
    acts, body = Acts(file), {"t": 12, "reason": reason}
    try:
        shown = acts.carry_out(
            file.with_name("t.dig.jsonl"), b"false-alarm", json.dumps(body).encode()
        )
        body["shown"] = shown["rule"]
        acts.carry_out(file.with_name("t.dig.jsonl"), b"false-alarm", json.dumps(body).encode())
    except RefusedError:
        assert not file.exists()
    else:
        (rule,) = load_policy(file, {}).rules
        assert (rule.reason, rule.agents) == (reason, (base_name(agent),))


def test_a_rule_is_added_to_what_is_there(server: Server, tmp_path: Path) -> None:
    """What stands in the file stays as it is, to the byte."""
    before = '# ours\n[policy]\nRSP = "off"\n\n[thresholds]\nreroute_limit = 5'
    (tmp_path / "digmon.toml").write_text(before)
    for _ in range(2):
        silence(server, shown=RULE)
    text = (tmp_path / "digmon.toml").read_text()
    assert text == f"{before}\n\n{RULE}\n{RULE}"
    assert [rule.pattern for rule in load_policy(tmp_path / "digmon.toml", {}).rules].count("ET")


def test_a_project_file_has_its_own_place(tmp_path: Path) -> None:
    directory(tmp_path / "runs", "early", hasty())
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.digmon.thresholds]\nreroute_limit = 5\n")
    with serving(tmp_path / "runs", settings=project) as server:
        rule = json.loads(silence(server).body)["rule"]
        assert rule.startswith('[[tool.digmon.policy."ET"]]')
        assert json.loads(silence(server, shown=rule).body)["is_written"]
    assert tomllib.loads(project.read_text())["tool"]["digmon"]["policy"]["ET"][0]["agents"]
    assert load_policy(project, {}).rules


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ('[policy]\nET = "off"\n', "a rule for ET already, in another form"),
        ('policy = {RSP = "off"}\n', "policy in another form"),
        ("no TOML = = \n", "line 1"),
        ("\xff", "decode"),
        ('[policy]\nRSPP = "off"\n', "no pattern 'RSPP'"),
        ("[policy]\nheal = 3\n", "heal is 3"),
        (RULE.replace('"off"', '"observe"'), 'decides before it: observe (a "drill")'),
    ],
)
def test_a_file_that_would_be_spoilt_is_left(
    server: Server, tmp_path: Path, before: str, reason: str
) -> None:
    """Or in which the rule has no effect: the person learns why, and can write it there."""
    (tmp_path / "digmon.toml").write_bytes(before.encode("latin-1"))
    for shown in (None, RULE):
        answer = silence(server, shown=shown)
        assert answer.status == 409 and b"digmon.toml" in answer.body
        assert reason in answer.body.decode()
    assert (tmp_path / "digmon.toml").read_bytes() == before.encode("latin-1")


def test_a_reason_may_have_any_character(server: Server, tmp_path: Path) -> None:
    """Also the one that JSON allows in a text and TOML does not."""
    rule = json.loads(silence(server, reason="a\x7fb").body)["rule"]
    assert 'reason = "a\\u007fb"' in rule
    assert json.loads(silence(server, reason="a\x7fb", shown=rule).body)["is_written"]
    (read,) = load_policy(tmp_path / "digmon.toml", {}).rules
    assert read.reason == "a\x7fb"


def test_findings_at_one_record_have_numbers(tmp_path: Path) -> None:
    """Two late deliveries, which the detectors raise at one moment."""
    run = store(tmp_path / "t.dig.jsonl", late_twice())
    late = [f for f in RecordedRun.read(run, detectors=standard()).found if f.pattern == "LATE"]
    assert [(f.t, f.subject) for f in late] == [(late[0].t, {"event": e}) for e in "qm"]
    at_record = [f for f in RecordedRun.read(run, detectors=standard()).found if f.t == late[0].t]
    for finding, type_ in zip(late, ("one", "other"), strict=True):
        body = {"t": finding.t, "number": at_record.index(finding), "reason": "slow"}
        shown = Acts(tmp_path / "digmon.toml").carry_out(
            run, b"false-alarm", json.dumps(body).encode()
        )
        assert tomllib.loads(shown["rule"])["policy"]["LATE"][0]["types"] == [type_]
    body["number"] = len(at_record)
    with pytest.raises(RefusedError, match="is no finding"):
        Acts(tmp_path / "digmon.toml").carry_out(run, b"false-alarm", json.dumps(body).encode())


def failed_request(*parts: list[Row], **detail: Any) -> list[Row]:
    """A session whose request ends by an error."""
    failed = row(3, "incident", what="request_failed", detail={"how": "error", **detail})
    return trace(*parts, failed, session=True)


@pytest.mark.parametrize(
    ("rows", "agents"),
    [
        (failed_request(arrive(0, "p", None, "a"), turn(1, "v", "a", p="consume"), event="p"), "a"),
        (failed_request(arrive(0, "p", None, "a"), turn(1, "v", "a", p="consume"), activation="v"),
         "a"),
        (failed_request(arrive(0, "p", None, "a"), event="p"), ""),
        (failed_request(arrive(0, "p", None, "a")), ""),
    ],
)  # fmt: skip
def test_a_rule_about_a_failed_request_names_agents(
    tmp_path: Path, rows: list[Row], agents: str
) -> None:
    """Or is refused, since it would silence every failed request."""
    run, file = store(tmp_path / "t.dig.jsonl", rows), tmp_path / "digmon.toml"
    recorded = RecordedRun.read(run, detectors=standard())
    (finding,) = (f for f in recorded.found if f.stage == "request")
    number = [f for f in recorded.found if f.t == finding.t].index(finding)
    body = json.dumps({"t": finding.t, "number": number, "reason": "a drill"}).encode()
    if agents:
        shown = Acts(file).carry_out(run, b"false-alarm", body)
        assert tomllib.loads(shown["rule"])["policy"]["FAIL"][0]["agents"] == [*agents]
    else:
        with pytest.raises(RefusedError, match=r"too general.*write it yourself"):
            Acts(file).carry_out(run, b"false-alarm", body)
    assert not file.exists()


def test_only_a_finding_can_be_a_false_alarm(server: Server) -> None:
    answer = post(server, "run/early/false-alarm", {"t": 3, "reason": "no"})
    assert (answer.status, answer.body) == (409, b"409 Conflict: record 3 is no finding\n")


# --- notes ---


def test_a_note_is_written_shown_and_removed(server: Server, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "good"
    assert post(server, "run/good/note", {"text": " looked\nat \u2713 "}).status == 200
    assert (run / "note.txt").read_text() == " looked\nat \u2713 "
    assert (run / "note.txt").stat().st_mode & 0o777 == 0o600
    assert summarise(run).note == "looked\nat \u2713"
    assert json.loads(post(server, "run/good/note", {"text": ""}).body) == {"note": ""}
    assert not (run / "note.txt").exists() and summarise(run).note == ""


def test_acts_wait_for_one_another(server: Server, tmp_path: Path) -> None:
    """A note is not written while another act is carried out."""
    acts, body = Acts(tmp_path / "digmon.toml"), json.dumps({"text": "mine"}).encode()
    run = tmp_path / "runs" / "good"
    with ThreadPoolExecutor(1) as pool:
        with acts._lock:
            note = pool.submit(acts.carry_out, run, b"note", body)
            with pytest.raises(TimeoutError):
                note.result(0.2)
            assert not (run / "note.txt").exists()
        assert note.result(20) == {"note": "mine"}


def test_a_note_on_a_trace_stands_beside_it(tmp_path: Path) -> None:
    run = directory(tmp_path / "runs", "good", solved()) / "trace.dig.jsonl"
    run = run.rename(tmp_path / "alone.dig.jsonl")
    with serving(run) as server:
        assert post(server, "run/alone.dig.jsonl/note", {"text": "mine"}).status == 200
    assert (tmp_path / "alone.dig.jsonl.note.txt").read_text() == "mine"
    assert summarise(run).note == "mine"


def test_a_note_follows_no_link(server: Server, tmp_path: Path) -> None:
    """Whoever can put a link into the directory cannot have another file written."""
    (tmp_path / "other").write_text("theirs")
    (tmp_path / "runs" / "good" / "note.txt").symlink_to(tmp_path / "other")
    assert post(server, "run/good/note", {"text": "mine"}).status == 200
    assert (tmp_path / "other").read_text() == "theirs"


# --- who may write, and what ---

FOREIGN: list[dict[str, str | None]] = [
    {"Origin": None},
    {"Origin": "null"},
    {"Origin": "http://evil.example"},
    {"Origin": "https://127.0.0.1:{port}"},
    {"Origin": "http://localhost:{port}"},  # the page was opened as 127.0.0.1
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Sec_Fetch_Site": "none"},
    {"Content_Type": None},
    {"Content_Type": "text/plain"},
    {"Content_Type": "application/x-www-form-urlencoded"},
    {"Content_Type": "multipart/form-data"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("act", ["note", "false-alarm"])
def test_pages_from_elsewhere_write_nothing(
    server: Server, tmp_path: Path, headers: dict[str, str | None], act: str
) -> None:
    """Even one that knows the token: a form, a script of another origin, another port."""
    before = files(tmp_path)
    named = {k: v and v.format(port=server.server_port) for k, v in headers.items()}
    bodies = {"note": {"text": "x"}, "false-alarm": {"t": 12, "reason": "x", "shown": RULE}}
    answer = post(server, f"run/early/{act}", bodies[act], **named)
    assert answer.status == 403
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("run/early/note", {"text": "x"}, {"Host": "evil.example"}, 421),
        ("run/early/note", {"text": "x" * (MOST_NOTE + 1)}, {}, 400),
        ("run/early/note", {"text": 3}, {}, 400),
        ("run/early/note", {"text": "x", "file": "/etc/passwd"}, {}, 400),
        ("run/early/note", b"{", {}, 400),
        ("run/early/note", b"[" * 30_000, {}, 400),
        ("run/early/note", {"text": "x"}, {"Content_Length": None}, 411),
        ("run/early/note", {"text": "x"}, {"Content_Length": "-1"}, 411),
        ("run/early/note", b"x", {"Content_Length": str(MOST_BODY + 1)}, 413),
        ("run/early/false-alarm", {"t": "12", "reason": "x"}, {}, 400),
        ("run/early/false-alarm", {"t": 12, "reason": ""}, {}, 400),
        ("run/early/false-alarm", {"t": 12}, {}, 400),
        ("run/early/other", {}, {}, 404),
        ("run/early/", {}, {}, 404),
        ("run/early/events", {}, {}, 404),
        ("run/none/note", {"text": "x"}, {}, 404),
        ("run/%2e%2e/note", {"text": "x"}, {}, 404),
        ("run/..%2Fruns%2Fearly/note", {"text": "x"}, {}, 404),
        ("runs", {}, {}, 404),
        ("", {}, {}, 404),
    ],
    ids=str,
)
def test_what_nobody_named_is_refused(
    server: Server, tmp_path: Path, path: str, body: object, headers: dict[str, Any], status: int
) -> None:
    before = files(tmp_path)
    assert post(server, path, body, **headers).status == status
    assert files(tmp_path) == before


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_only_post_writes(server: Server, tmp_path: Path, method: str) -> None:
    before = files(tmp_path)
    answer = post(server, "run/early/note", {"text": "x"}, method)
    assert answer.status == (404 if method in ("GET", "HEAD") else 405)
    assert files(tmp_path) == before


def test_a_body_that_never_comes_is_not_waited_for(server: Server, tmp_path: Path) -> None:
    """The connection ends after the time that a request may take to arrive."""
    server.asking_s = 0.2
    with connected(server) as connection:
        headers = {"Origin": f"http://127.0.0.1:{server.server_port}", "Content_Length": "9",
                   "Content_Type": "application/json"}  # fmt: skip
        connection.sendall(request(server, f"/{TOKEN}/run/early/note", "POST", **headers))
        assert connection.recv(100) == b""
    assert not (tmp_path / "runs" / "early" / "note.txt").exists()
