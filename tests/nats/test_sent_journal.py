"""Journals of wrapped teams that go to a server: pulled, whole, and never waited for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

import dig
from dig.adapters.nats import sent_journal
from dig.adapters.nats.connection import connect
from dig.adapters.nats.embedded import stored_pid
from dig.adapters.nats.pull import pull
from dig.adapters.nats.serving import session_rows
from dig.errors import SettingsError
from dig.traces.journal.journal import UNREPLAYABLE
from dig.traces.verify import verify

TRACE = "trace.dig.jsonl"


def work(times: int, journal: str | Path) -> None:
    """Let a wrapped team of two work, and unwrap it."""
    team = {"ada": lambda text: text.upper(), "bob": len}
    wrapped = dig.wrap(team, journal=journal)
    for number in range(times):
        assert wrapped["bob"](wrapped["ada"]("x" * number)) == number
    dig.unwrap(wrapped)


def pulled(url: str, runs: Path) -> list[Path]:
    """All runs of the server, as directories."""

    async def run() -> None:
        async with connect(url) as client:
            await pull(client, runs, None, follow=False, tell=str)
            assert await session_rows(client) == []  # nobody serves the run of a wrapped team

    anyio.run(run)
    return sorted(runs.glob("*"))


def test_a_pulled_run_is_like_one_that_was_kept_here(url: str, tmp_path: Path) -> None:
    """Its side file and its records, with payloads of any size, are those of a directory."""
    for journal in (url, url, tmp_path / "here"):
        work(20, journal)
    first, second = pulled(url, tmp_path / "pulled")
    (here,) = (tmp_path / "here").iterdir()
    sides = [json.loads((run / "side.json").read_text()) for run in (first, second, here)]
    assert {side["team"] for side in sides} == {sides[2]["team"]}
    assert sides[0]["execution"] == first.name != second.name
    assert sides[2].keys() - sides[0].keys() == {"durability"}
    kinds = [
        [json.loads(line)["kind"] for line in (run / TRACE).read_text().splitlines()]
        for run in (first, second, here)
    ]
    assert kinds[0] == kinds[1] == kinds[2]
    assert kinds[0][-1] == "finish"
    assert verify(first / TRACE).problems == []
    assert not (first / f"{TRACE}{UNREPLAYABLE}").exists()


def test_a_team_does_not_wait_for_a_server_that_hangs(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has no room is left out, the trace ends there, and its copy says so."""
    monkeypatch.setattr(sent_journal, "ROOM", 50)
    monkeypatch.setattr(sent_journal, "PATIENCE_S", 0.2)
    server = int(stored_pid(tmp_path))
    os.kill(server, signal.SIGSTOP)
    try:
        work(200, url)
    finally:
        os.kill(server, signal.SIGCONT)

    for _ in range(100):
        runs = pulled(url, tmp_path / "pulled")
        if runs and (runs[-1] / f"{TRACE}{UNREPLAYABLE}").exists():
            break
        time.sleep(0.1)
    lines = (runs[-1] / TRACE).read_bytes().splitlines()
    assert 1 < len(lines) < 200
    assert verify(runs[-1] / TRACE).problems == []


def test_the_end_of_a_run_does_not_wait_for_a_server_that_went_away(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The part that has not arrived is named at once."""
    monkeypatch.setattr(sent_journal, "PATIENCE_S", 120.0)
    wrapped = dig.wrap({"ada": len}, journal=url)
    wrapped["ada"]("x")
    for _ in range(200):
        if pulled(url, tmp_path / "before"):
            break
        time.sleep(0.05)
    os.kill(int(stored_pid(tmp_path)), signal.SIGKILL)
    time.sleep(0.2)
    wrapped["ada"]("y")
    began = time.monotonic()
    dig.unwrap(wrapped)
    assert time.monotonic() - began < 60.0
    assert "has not arrived" in caplog.text


def test_a_program_that_ends_at_once_sends_all(url: str, tmp_path: Path) -> None:
    """The name of the server is looked up when Python begins no more threads for that."""
    script = "import dig, sys; dig.wrap({'ada': len}, journal=sys.argv[1])['ada']('x')"
    address = url.replace("127.0.0.1", "localhost")
    subprocess.run([sys.executable, "-c", script, address], check=True)
    (run,) = pulled(url, tmp_path / "pulled")
    assert '"kind":"finish"' in (run / TRACE).read_text()


@pytest.mark.parametrize(
    "address", ["nats://u:secret@127.0.0.1:x", "ws://127.0.0.1:99999", "nats://[::1", "nats://"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    """At once, and without its password."""
    with pytest.raises(SettingsError, match="is no address of a server: they look like") as caught:
        dig.wrap({"ada": len}, journal=address)
    assert "secret" not in str(caught.value)


def test_an_error_of_the_library_does_not_reach_the_team(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of the run says that its journal has not arrived."""

    async def fail(*args: object, **options: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(sent_journal, "make_streams", fail)
    work(2, url)
    assert "the journal is not sent: broken" in caplog.text
    assert "has not arrived" in caplog.text


def test_the_last_record_of_a_journal_that_ends_early_is_named(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A request that is larger than a message ends it."""
    wrapped = dig.wrap({"ada": len}, journal=url)
    wrapped["ada"]("x")
    for _ in range(200):
        if pulled(url, tmp_path / "before"):
            break
        time.sleep(0.05)
    wrapped["ada"]("x" * 9_000_000)
    dig.unwrap(wrapped)
    (run,) = pulled(url, tmp_path / "pulled")
    last = json.loads((run / TRACE).read_text().splitlines()[-1])["t"]
    assert f"ends after record {last}:" in caplog.text
    assert (run / f"{TRACE}{UNREPLAYABLE}").exists()


def test_an_address_without_the_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the extra."""
    monkeypatch.setitem(__import__("sys").modules, "nats", None)
    with pytest.raises(SettingsError, match=r"dig-monitor\[nats\]"):
        dig.wrap({"ada": len}, journal="nats://127.0.0.1:4222")
