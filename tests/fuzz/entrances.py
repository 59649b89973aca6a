"""The entrances that are fuzzed: what goes in, and what may come out."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from dig._util.json_values import dumps
from dig.detectors import standard
from dig.detectors.describe import explain
from dig.detectors.watch import Watch
from dig.errors import ReplayError, TraceError
from dig.graph.chain import Chain, bare
from dig.graph.codec import decode, encode
from dig.graph.graph import InteractionGraph
from dig.show.page.rows import Rows
from dig.show.server.server import Server
from dig.show.server.shelf import Shelf
from dig.tasks.run.arrange import arrange, make_simulation, make_task
from dig.tasks.run.team_run import TeamRun
from dig.traces.interchange.imports import import_file
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE, check_trace, read_records
from dig.traces.otel.stored_spans import export_text
from dig.traces.replay.rerun import replay, rerun
from dig.traces.replay.rewind import rewind
from dig.traces.verify import verify
from tests.hostile import hostile_run
from tests.oracle import Row
from tests.show.server.client import TOKEN, parse, request
from tests.traces.interchange.coding import at, foreground
from tests.traces.interchange.span_files import PRODUCERS
from tests.traces.interchange.test_trajectories import team
from tests.traces.runs import directory, hasty, solved, store

from .entrance import Entrance, assert_short
from .sets import Sets

DATA = Path(__file__).parents[1] / "lab" / "data"
_STATUSES = (200, 302, 400, 403, 404, 405, 414, 421, 431, 501, 505)
_ROOM = 4 * 1024 * 1024

LOG = """\
id,from,to,at,reply_to,content
q,user,planner,2026-03-01T10:00:00Z,,Count the words
a,planner,ann;bob,2026-03-01T10:00:02Z,q,"first, half"
c,ann,planner,2026-03-01T10:00:05Z,a,120
d,bob,*,3.5,,98
e,planner,user,2026-03-01T10:00:11Z,c;d,218
"""


class Reader(Entrance):
    """The trace reader, the graph and the detectors behind it, the page's rows, and the checker."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRACE
        self.seeds = [self._bytes(rows) for rows in (solved(tokens=3), hasty(), hostile_run(5))]

    def take(self, data: bytes) -> bool:
        self._path.write_bytes(data)
        try:
            found = list(check_trace(self._path, Watch(standard())))
            rows, graph = Rows(), InteractionGraph()
            for record in read_records(self._path):
                graph.apply(record)
                json.dumps(rows.of(record))
                assert decode(json.loads(encode(record))) == record
            for finding in found:
                str(explain(graph, finding))
        except TraceError as error:
            assert_short(error)
            found = None
        try:
            report = verify(self._path)
        except ValueError:
            assert found is None, "the checker says that this is no trace at all"
        else:
            assert bool(report.problems) == (found is None), report.problems[:3]
        return found is not None

    def _bytes(self, rows: list[Row]) -> bytes:
        return store(self._path, rows).read_bytes()


class Importers(Entrance):
    """What other programs recorded: graphs, message logs, spans, files of coding agents."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "file"
        rows = [
            {"id": "1", "from": "user", "to": ["ann"], "at": 0, "content": {"text": ["why?"]}},
            {"id": "2", "from": "ann", "to": "user", "at": 1.5, "reply_to": ["1"], "text": "so"},
        ]
        self.seeds = [
            (DATA / "dig-graph-external.json").read_bytes(),
            LOG.encode(),
            json.dumps({"messages": rows}).encode(),
            "\n".join(map(json.dumps, rows)).encode(),
            *(path.read_bytes() for path in sorted(PRODUCERS.iterdir())),
            "".join(export_text(store(folder / "run.jsonl", hasty()))).encode(),
            foreground(folder / "s").read_bytes(),
            json.dumps(team()).encode(),
            json.dumps([{"from": "a", "text": "b", "timestamp": at(1), "read": True}]).encode(),
        ]

    def take(self, data: bytes) -> bool:
        self._path.write_bytes(data)
        try:
            imported = import_file(self._path)
        except TraceError as error:
            assert_short(error)
            return False
        graph = InteractionGraph()
        for record in imported.records:
            graph.apply(decode(json.loads(encode(record))))
        assert all(isinstance(text, str) for text in imported.guesses)
        return True


class Requests(Entrance):
    """The local server, from the bytes of a request to those of its answer."""

    def __init__(self, folder: Path) -> None:
        directory(folder, "one", solved(), method="dig")
        self._server = Server(Shelf(folder), 0, TOKEN)
        self._server.asking_s = 0.5
        paths = ("", "runs", "runs.js", "run/one/", "run/one/events", "run/two/", "../x", "%2e%2e/")
        more = {"Origin": f"http://127.0.0.1:{self._server.server_port}", "Last-Event-ID": "3"}
        self.seeds = [
            request(self._server, f"/{TOKEN}/{path}", method, **headers)
            for path in paths
            for method, headers in (("GET", {}), ("GET", more), ("HEAD", more))
        ]

    def take(self, data: bytes) -> bool:
        here, there = socket.socketpair()
        with here, there:
            there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)
            here.sendall(data)
            here.shutdown(socket.SHUT_WR)
            try:
                self._server.finish_request(there, ("127.0.0.1", 0))
            except OSError:  # the server takes it for a reader that has gone
                return False
            there.shutdown(socket.SHUT_WR)
            got = b"".join(iter(lambda: here.recv(65536), b""))
        if not got:  # nothing was asked
            return False
        answer = parse(got)
        assert answer.status in _STATUSES, answer
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        if answer.status == 200:
            assert TOKEN.encode() in data, "answered without the token"
        return answer.status == 200

    def close(self) -> None:
        self._server.server_close()


class Journals(Entrance):
    """Replay, rerun and fork: a journal whose checksums are right, and whose text may be anything.

    The checksums guard against accidents; whoever has bad intent writes them anew.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRACE
        self.seeds = [self._run(method) for method in ("dig", "mas")]

    def take(self, data: bytes) -> bool:
        chain = Chain()
        lines = [chain.seal(_as_written(line)) for line in data.split(b"\n") if line]
        self._path.write_bytes(b"".join(lines))
        refused = [self._refused(look, len(lines)) for look in (_replay, _rerun, _rewind)]
        return not any(refused)

    def _refused(self, look: Callable[[Path, int], object], lines: int) -> bool:
        try:
            look(self._path, lines)
        except (TraceError, ReplayError) as error:
            assert_short(error)
            return True
        return False

    def _run(self, method: str) -> bytes:
        run = TeamRun(agents=3, size=2_000, seed=4, method=method, limit_s=30)
        self._path.unlink(missing_ok=True)
        arranged = arrange(run, task := make_task(run))
        with closing(Journal(self._path, header=arranged.setup.header())) as journal:
            make_simulation(run, task, journal, arrangement=arranged).run()
        return "\n".join(map(bare, self._path.read_bytes().splitlines(keepends=True))).encode()


def _as_written(line: bytes) -> bytes:
    """A line as a journal has it, if it is JSON: a rerun compares bytes."""
    try:
        return dumps(json.loads(line)).encode()
    except (ValueError, RecursionError):
        return line


def _replay(path: Path, lines: int) -> None:
    replay(path)


def _rerun(path: Path, lines: int) -> None:
    rerun(path)


def _rewind(path: Path, lines: int) -> None:
    rewind(path, lines // 2)


ENTRANCES: dict[str, Callable[[Path], Entrance]] = {
    "reader": Reader,
    "importers": Importers,
    "server": Requests,
    "journals": Journals,
    "sets": Sets,
}
