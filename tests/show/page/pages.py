"""What stands in a written report."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any


def inlined(page: str) -> dict[str, Any]:
    """Head and rows, as the page itself reads them."""
    found = re.search(r'<div id="data"[^>]*>([A-Za-z0-9+/=]+)</div>', page)
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(b64decode(found[1])))
    return data


def rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a report."""
    shown: list[dict[str, Any]] = inlined(file.read_text("utf-8"))["rows"]
    return shown
