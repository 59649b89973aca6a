"""No package grows, and none speaks less plainly, without a word about it in the same commit."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent

import pytest

from .ceilings import files, packages, shares
from .test_architecture import MODULES, ROOT, imported

# Lines of code. A change that needs more raises its row in the same commit, and says why there.
LINES = {
    "dig": 301,
    "_util": 779,
    "adapters": 12_275,
    "cli": 2_751,
    "detectors": 5_560,
    "diagnosis": 6_983,
    "faults": 1_222,
    "graph": 2_658,
    "lab": 9_160,
    "monitor": 2_176,
    "runtime": 4_647,
    "show": 5_752,
    "tasks": 2_790,
    "traces": 7_197,
}

# What a command imports at any time; packages' own `__init__` are not counted.
