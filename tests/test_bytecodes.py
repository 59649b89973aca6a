"""What a message costs, in bytecodes: exact, so a figure may only go down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Only ever lowered. Another version of Python has other bytecodes.
MOST = {
    "message, thirteen patterns, journal": 6_172,
    "message, the first eleven, journal": 6_118,
    "message, thirteen patterns": 5_398,
    "message, the paper's seven": 4_240,
    "message, no detector": 4_206,
}

# In a process of its own: pytest writes the assertions of dig anew, which has a plugin for it.
PROGRAM = """
import json
from bench.bytecodes import MESSAGES, counted, total
print(json.dumps({name: total(counted(work)) for name, work in MESSAGES.items()}))
"""


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the figures are those of 3.11")
def test_a_message_takes_no_more_bytecodes_than_before() -> None:
    """A message round a ring of agents: two requests, four records, their looks and the release."""
    command, root = [sys.executable, "-c", PROGRAM], Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    taken = json.loads(done.stdout)
    assert {name: n for name, n in taken.items() if n > MOST[name]} == {}
