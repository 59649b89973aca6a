"""The program for hooks of Claude Code: `python -I -S hook.py DIRECTORY [OPTION ..]`.

It sends the event to the monitor that listens in the directory and, with `--hold`, prints the
monitor's answer. It imports only the standard library, since the agent waits for it. Without a
monitor, and whatever goes wrong, the agent goes on: the exit status is 0, and nothing is printed.
"""

import os
import sys

SOCKET = "monitor.sock"
CONNECT_S, ANSWER_S = 0.05, 1.0


def ask(directory: str, options: list[str]) -> bytes:
    """Send the event on standard input; return the answer, empty if there is none."""
    event = sys.stdin.buffer.read()  # first of all, since the host fails on a closed pipe
    import _socket  # `socket` around it takes as long to import as Python to start

    os.chdir(directory)  # the path of a socket may have about a hundred bytes
    monitor = _socket.socket(_socket.AF_UNIX)
    monitor.settimeout(CONNECT_S)
    monitor.connect(SOCKET)
    monitor.settimeout(ANSWER_S)
    monitor.sendall(" ".join(options).encode() + b"\n" + event)
    monitor.shutdown(_socket.SHUT_WR)
    # A single read, so that the limit is for the whole answer; half an answer is none.
    answer = monitor.recv(1 << 16) if "--hold" in options else b""
    return answer if answer.endswith(b"\n") else b""


if __name__ == "__main__":
    try:
        os.write(1, ask(sys.argv[1], sys.argv[2:]))
    finally:
        os._exit(0)  # no traceback, and no other status
