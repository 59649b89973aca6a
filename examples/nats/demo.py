"""A team in three processes, two monitors, one server; an agent and the monitor are killed.

Run it: make demo-nats. At the end it tells what happened, from the journal alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

DIGMON = [sys.executable, "-m", "dig"]
TEAM = Path(__file__).with_name("team.py")
TOPICS = ("rivers", "lakes", "seas", "rain")


@contextmanager
def started(*command: object, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the demo, ended with it."""
    with log.open("ab") as file:
        process = subprocess.Popen([*map(str, command)], stdout=file, stderr=file, cwd=TEAM.parent)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def ask(url: str, topic: str) -> str:
    command = [*DIGMON, "ask", "news", f'{{"topic": "{topic}"}}', "--to", "editor", "--nats", url]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return answer.stdout.strip() or answer.stderr.strip()


def main() -> None:
    from dig.adapters.nats.embedded import embed_server

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(embed_server(folder))
        say("a server is running on this machine")
        run = [*DIGMON, "serve", "--nats", url, "--session", "news", "--lease", "1.5"]
        run += ["--agents", "editor,ada,bob"]
        first = stack.enter_context(started(*run, log=folder / "first"))
        second = stack.enter_context(started(*run, "--standby", log=folder / "second"))
        agents = {
            name: stack.enter_context(
                started(*DIGMON, "agent", "news", name, f"team:{name}", "--nats", url,
                        log=folder / name)
            )
            for name in ("editor", "ada", "bob")
        }  # fmt: skip
        say("two monitors and three agents are running, each in a process of its own")
        say(f"asked about {TOPICS[0]}: {ask(url, TOPICS[0])}")

        agents["ada"].kill()
        say("ada's process was killed (kill -9)")
        stack.enter_context(
            started(*DIGMON, "agent", "news", "ada", "team:ada", "--nats", url, log=folder / "ada2")
        )
        say(f"ada runs again; asked about {TOPICS[1]}: {ask(url, TOPICS[1])}")

        owner = first if "taken" in (folder / "first").read_text() else second
        os.kill(owner.pid, signal.SIGKILL)
        began = time.monotonic()
        say("the monitor that owned the session was killed (kill -9)")
        say(f"asked about {TOPICS[2]}: {ask(url, TOPICS[2])}")
        say(f"the other monitor had it {time.monotonic() - began:.1f} s later")
        say(f"asked about {TOPICS[3]}: {ask(url, TOPICS[3])}")

        runs = folder / "runs"
        pull = [*DIGMON, "pull", url, "news", runs, "--once"]
        subprocess.run([*map(str, pull)], check=True, capture_output=True)
        print("\nThe story, from the journal:\n", flush=True)
        subprocess.run([*DIGMON, "sessions", "--nats", url], check=False)
        print(flush=True)
        subprocess.run([*DIGMON, "verify", str(runs / "news")], check=False)
        subprocess.run([*DIGMON, "replay", "--rerun", str(runs / "news")], check=False)
        subprocess.run([*DIGMON, "show", str(runs / "news")], check=False)


if __name__ == "__main__":
    main()
