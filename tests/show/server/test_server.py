"""The local server: whom it answers, what it answers, and that nobody holds it up."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import SettingsError, TraceError
from dig.show.server.page_routes import PageResponse
from dig.show.server.server import Server
from dig.show.server.shelf import Shelf
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE
from tests.show.server.client import (
    TOKEN,
    connected,
    get,
    happenings,
    parse,
    request,
    send,
    serving,
)
from tests.traces.journals import story, write
from tests.traces.runs import directory, hasty, solved, store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, and beside them what is nobody's business."""
    folder = tmp_path_factory.mktemp("runs")
    directory(folder, "one", solved(), method="dig")
    directory(folder, "two & <b>", hasty())
    (folder / "secret").mkdir()
    (folder / "secret" / "key").write_text("secret")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """A server of the directory."""
    with serving(folder) as server:
        yield server


# --- who is answered ---


def test_who_knows_the_address_is_answered(server: Server) -> None:
    """The address that is printed works, by either name of this machine."""
    assert server.address == f"http://127.0.0.1:{server.server_port}/{TOKEN}/"
    assert get(server).status == 200
    assert get(server, Host=f"localhost:{server.server_port}").status == 200
    assert get(server, "runs", Origin=server.address.partition(f"/{TOKEN}")[0]).status == 200


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "127.0.0.1",
        "127.0.0.1:1",
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1:{port}, evil.example",
        "user@127.0.0.1:{port}",
        "[::1]:{port}",
        "0.0.0.0:{port}",
    ],
)
def test_another_host_is_refused(server: Server, host: str | None) -> None:
    """A name that somebody lets point to this machine is not this server's."""
    named = None if host is None else host.format(port=server.server_port)
    answer = get(server, "runs", Host=named)
    assert (answer.status, b"one" in answer.body) == (421, False)


def test_two_hosts_are_refused(server: Server) -> None:
    """Of two names nobody knows which one counts."""
    asked = request(server, f"/{TOKEN}/").replace(b"\r\n\r\n", b"\r\nHost: evil.example\r\n\r\n")
    with connected(server) as connection:
        connection.sendall(asked)
        assert parse(connection.recv(65536)).status == 421


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1", ""]
)
def test_a_page_from_elsewhere_is_refused(server: Server, origin: str) -> None:
    """What has another origin gets nothing, even if it knows the token."""
    answer = get(server, "runs", Origin=origin.format(port=server.server_port))
    assert (answer.status, b"one" in answer.body) == (403, False)
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    "target",
    ["/", "//", "/é/", "/runs", "/run/one/", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/runs",
     f"/{TOKEN.upper()}/", f"/%74{TOKEN[1:]}/"],
)  # fmt: skip
def test_without_the_token_nothing_is_told(server: Server, target: str) -> None:
    """Not even whether there is such a thing."""
    answer = send(server, target)
    assert answer.status == 403
    assert answer.body == send(server, "/x/").body


def test_an_invitation_shows_the_way_once(server: Server) -> None:
    """Who reads it in a list of processes comes too late; and it is good for nothing else."""
    path = "/" + server.guard.invitation().rpartition("/")[2]
    assert send(server, f"{path}/runs").status == 403
    assert send(server, path, Host="evil.example").status == 421
    answer = send(server, path)
    assert (answer.status, answer.headers["Location"]) == (302, server.address)
    assert send(server, path).status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "x"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    """No preflight is answered, so no page from elsewhere gets to send JSON."""
    answer = get(server, "runs", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, POST")


def test_head_is_get_without_its_content(server: Server) -> None:
    """HEAD tells the length of what GET sends; of a stream it sends nothing."""
    whole, head = get(server), get(server, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == str(len(whole.body))
    assert get(server, "run/one/events", "HEAD").body == b""


# --- what is answered ---


@pytest.mark.parametrize("path", ["", "runs", "runs.js", "run/one/", "run/one/events", "none"])
def test_every_answer_forbids_what_no_page_needs(server: Server, path: str) -> None:
    """Nothing is framed, sniffed, kept, or loaded from elsewhere."""
    headers = get(server, path).headers
    rules = headers["Content-Security-Policy"].split("; ")
    assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(rules)
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "*" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Python" not in headers["Server"]


def test_the_runs_are_listed_with_their_addresses(server: Server) -> None:
    """Each address in the list is that of the run's page."""
    listed = json.loads(get(server, "runs").body)["runs"]
    assert [run["path"] for run in listed] == ["one", "two & <b>"]
    for run in listed:
        assert get(server, run["address"]).status == 200


def test_one_run_is_shown_at_once(folder: Path) -> None:
    """Who serves one run gets to its page, and to no other."""
    with serving(folder / "one") as server:
        assert server.address.endswith(f"/{TOKEN}/run/one/")
        answer = get(server)
        assert (answer.status, answer.headers["Location"]) == (302, "run/one/")
        assert get(server, "run/one/").status == 200
        assert get(server, "run/two%20%26%20%3Cb%3E/").status == 404


TRAVERSALS = ["..", ".", "../secret", "secret", "one/..", "/etc", "one\0", "..\\secret",
              ".index.json", "../" * 8 + "etc/passwd"]  # fmt: skip


@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_path_leads_out_of_the_list(server: Server, name: str) -> None:
    """A name is looked up among the runs; it is never part of a path."""
    for part in (quote(name, safe=""), quote(name), quote(quote(name, safe=""), safe="")):
        for path in (f"run/{part}/", f"run/{part}/events", part, f"{part}/key", f"run/{part}/key"):
            assert get(server, path).status == 404, path


@given(st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=40))
def test_whatever_is_asked_for_is_there_or_is_not(server: Server, path: str) -> None:
    """No path breaks the server."""
    assert get(server, path).status in (200, 400, 404)


@pytest.mark.parametrize("name", ["runs", "run", "t.dig.jsonl"])
def test_what_is_not_there_yet_is_waited_for(tmp_path: Path, name: str) -> None:
    """A directory of runs, a run or a trace: its page is that of any other."""
    with serving(tmp_path / name) as server:
        assert json.loads(get(server, "runs").body)["runs"] == []
        assert get(server).status == 200
        if name == "t.dig.jsonl":
            store(tmp_path / name, solved())
        else:
            directory(tmp_path if name == "run" else tmp_path / "runs", "run", solved())
        assert get(server).status == (200 if name == "runs" else 302)
        assert get(server, f"run/{name.removesuffix('s')}/").status == 200


def test_a_file_that_is_no_trace_is_an_error(tmp_path: Path) -> None:
    """One that is empty, or has the part of a first line, may become one."""
    path = tmp_path / "notes.txt"
    path.write_text('{"t": 0,')
    assert Shelf(path).is_one
    path.write_text("Notes\n")
    with pytest.raises(TraceError, match="a trace begins with a record of kind `run`"):
        Shelf(path)


def test_a_port_that_is_taken_is_an_error(server: Server, folder: Path) -> None:
    """The message names the port."""
    with pytest.raises(SettingsError, match=str(server.server_port)):
        Server(Shelf(folder), server.server_port)


def test_each_server_has_a_token_of_its_own(folder: Path) -> None:
    """128 random bits."""
    tokens = set()
    for _ in range(3):
        server = Server(Shelf(folder))
        server.server_close()
        tokens.add(server.guard.token)
    assert len(tokens) == 3
    assert all(len(token) >= 22 for token in tokens)


# --- following ---


def test_a_record_arrives_within_a_second_of_its_line(tmp_path: Path) -> None:
    """And who was cut off goes on after the last record that arrived."""
    journal = Journal(tmp_path / TRACE)
    records = story()
    journal(records[0])
    with serving(tmp_path) as server:
        path = f"{server.routes.start()}events"
        with connected(server) as connection:
            connection.sendall(request(server, f"/{TOKEN}/{path}"))
            found = happenings(
                iter(lambda: connection.recv(65536).replace(b"\r\n\r\n", b"\n\n"), b"")
            )
            assert next(found).name == "head"
            assert next(found).id == "0"
            began = time.monotonic()
            journal(records[1])
            assert next(found).id == "1"
            assert time.monotonic() - began < 1
        for record in records[2:]:
            journal(record)
        journal.close()
        rest = list(happenings(iter([get(server, path, Last_Event_ID="1").body])))
    assert [row["t"] for row in rest[1].data] == [2, 3, 4, 5, 6, 7]
    assert rest[-1].name == "end"


@pytest.mark.parametrize("named", ["", "x", "-1", "1.5", "٣", "9" * 99, "0x1"])
def test_a_last_record_that_is_none_means_all(folder: Path, named: str, server: Server) -> None:
    """A header of any shape breaks nothing."""
    answer = get(server, "run/one/events", Last_Event_ID=named.encode().decode("latin-1"))
    assert next(one for one in happenings(iter([answer.body])) if not one.name).data[0]["t"] == 0


# --- slow and many readers ---


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has ended a connection without an answer, as of a moment later."""
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_who_does_not_finish_a_request_is_dropped(folder: Path) -> None:
    """However slowly it comes: the whole of it has to be there in time."""
    with serving(folder, asking_s=0.3) as server, connected(server) as connection:
        began = time.monotonic()
        connection.settimeout(0.02)
        while not is_closed(connection) and time.monotonic() - began < 10:
            connection.sendall(b"G")
        assert time.monotonic() - began < 5
        assert get(server).status == 200


def test_who_does_not_read_is_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes nothing for a while has gone, or might as well."""
    sent: list[bytes] = []

    def endless() -> Iterator[bytes]:
        while True:
            sent.append(b"x")
            yield b"x" * 65536

    with serving(folder, answering_s=0.3) as server, connected(server) as connection:
        monkeypatch.setattr(server.routes, "answer", lambda *asked: PageResponse("x", endless()))
        connection.sendall(request(server, f"/{TOKEN}/"))
        assert connection.recv(10)
        until, before = time.monotonic() + 10, -1
        while before != len(sent) and time.monotonic() < until:
            before = len(sent)
            time.sleep(0.5)
        assert before == len(sent), "nobody writes any more"
        monkeypatch.undo()
        assert get(server).status == 200


def test_who_says_nothing_holds_up_nobody(folder: Path) -> None:
    """Others are answered meanwhile."""
    with serving(folder) as server, connected(server), connected(server):
        assert get(server).status == 200


def test_a_request_that_is_too_long_is_refused(server: Server) -> None:
    """Before it is read to its end."""
    with connected(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 16 * 1024)
        assert parse(connection.recv(65536)).status == 431


@pytest.mark.parametrize(
    "said", ["", "\x16\x03\x01", "GET", "GET /", "GET / HTTP/9.9", "GET http://evil/ HTTP/1.1"]
)
def test_what_is_no_request_is_refused(server: Server, said: str) -> None:
    """And the next one is answered."""
    with connected(server) as connection:
        connection.sendall(f"{said}\r\n\r\n".encode())
        answer = connection.recv(65536)
        assert answer == b"" or parse(answer).status >= 400
    assert get(server).status == 200


def test_there_are_only_so_many_connections(tmp_path: Path) -> None:
    """Who comes when all are taken by readers is told so, and may come again."""
    journal = Journal(tmp_path / TRACE)
    journal(story()[0])
    with serving(tmp_path, most_connections=3) as server:
        events = request(server, f"/{TOKEN}/{server.routes.start()}events")
        taken = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(3)]
        for connection in taken:
            connection.sendall(events)
            assert connection.recv(10)
        assert get(server).status == 503
        for connection in taken:
            connection.close()
        journal(story()[1])  # a reader that has gone is noticed when it is told something
        until = time.monotonic() + 10
        while (status := get(server).status) == 503 and time.monotonic() < until:
            pass
        assert status == 302
    journal.close()


def test_the_oldest_that_only_waits_is_dropped(folder: Path) -> None:
    """A newer one has its place; one that was answered in part keeps its own."""
    with serving(folder, most_connections=3) as server:
        waiting = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(3)]
        assert get(server).status == 200
        assert waiting[0].recv(1) == b""
        waiting[2].sendall(request(server, f"/{TOKEN}/"))
        assert parse(waiting[2].recv(65536)).status == 200
        for connection in waiting:
            connection.close()


def test_who_does_not_know_the_address_shuts_nobody_out(folder: Path) -> None:
    """120 programs that come again whenever they are dropped, and one visitor, 40 times."""
    is_over = Event()

    def come_again(server: Server) -> None:
        while not is_over.is_set():
            with suppress(OSError), connected(server) as connection:
                connection.sendall(b"GET /")
                connection.recv(1)

    with serving(folder) as server:
        threads = [Thread(target=come_again, args=(server,), daemon=True) for _ in range(120)]
        for thread in threads:
            thread.start()
        statuses = [get(server).status for _ in range(40)]
        is_over.set()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 40


def test_many_readers_are_told_the_same(tmp_path: Path) -> None:
    """Twenty at once, each all of it."""
    path = write(tmp_path)
    found: list[list[int]] = []

    def read(server: Server) -> None:
        body = get(server, f"{server.routes.start()}events").body
        found.append([row["t"] for e in happenings(iter([body])) if not e.name for row in e.data])

    with serving(path.parent) as server:
        threads = [Thread(target=read, args=(server,)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [list(range(8))] * 20


def test_closing_ends_streams_at_once(tmp_path: Path) -> None:
    """Who follows a run that goes on does not keep the server up."""
    journal = Journal(tmp_path / TRACE)
    journal(story()[0])
    with serving(tmp_path) as server, connected(server) as connection:
        connection.sendall(request(server, f"/{TOKEN}/{server.routes.start()}events"))
        assert connection.recv(10)
        began = time.monotonic()
    journal.close()
    assert time.monotonic() - began < 1
