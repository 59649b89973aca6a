"""Failure patterns: detectors, findings and their explanations, and healing.

- `patterns`: the built-in patterns, one file each, and their table.
- `protocols`: the base classes of detectors and healers; `plugins`: those of a user's own.
- `watch`: a graph with detectors that look at it after every record.
- `usual`, `team_usual`: what good runs raise, too, and is no alarm.
- `finding`, `describe`, `paths`: findings, in words, and the paths that prove them.
- `interventions`, `notes`: what healing may do, and how it speaks to agents; `ladder`: what its
  steps have in common; `turn_lengths`: of a team, for limits that are learned.
- `judged`: the findings of a judge; `rivals`: those of rivals that know no graph.
- `thresholds`: all settings in one place.
- `policy`: what is done about which findings; `policy_settings`, `settings_file`: read from a file.
- `recorded_names`: the names of detectors and healers in traces.
"""

from __future__ import annotations

from .describe import explain
from .finding import JUDGE, RETRY, WATCHDOG, is_rivals
from .interventions import COOLDOWN_S
from .patterns import PATTERNS, Pattern, standard, standard_healers

__all__ = [
    "COOLDOWN_S",
    "JUDGE",
    "PATTERNS",
    "RETRY",
    "WATCHDOG",
    "Pattern",
    "explain",
    "is_rivals",
    "standard",
    "standard_healers",
]
