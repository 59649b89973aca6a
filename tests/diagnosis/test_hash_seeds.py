"""What explains runs, conversations and incidents, in processes with other hash seeds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.diagnosis.conversations.talks import history, write
from tests.diagnosis.failed_runs import failed
from tests.lab.investigate.worlds import FLASH_SALE

PROGRAM = """
import sys
from pathlib import Path
from dig.diagnosis.conversations.explaining import explain
from dig.diagnosis.diagnosing import diagnose
from dig.lab.investigate.investigation import investigate
from dig.lab.investigate.rules import ServiceRules
from dig.lab.investigate.snapshot import Snapshot

run, talk, snapshot = map(Path, sys.argv[1:])
print(diagnose(run, has_graph=True).to_json())
print(explain(talk, has_graph=True).to_json())
print(investigate(Snapshot.read(snapshot), ServiceRules()).to_json())
"""


def test_no_document_depends_on_hash_seeds(tmp_path: Path) -> None:
    """The same bytes for any PYTHONHASHSEED: of a run, a conversation, and a snapshot."""
    run = failed(tmp_path, "corrupt")
    talk = write(tmp_path / "talk.json", history())
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, run, talk, FLASH_SALE], capture_output=True,
            check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert said[0] == said[1] and len(said[0].splitlines()) == 3
