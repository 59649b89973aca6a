"""Failure patterns: detectors, findings and their explanations, and healing.

- `patterns`: the built-in patterns, one file each, and their table.
- `protocols`: the base classes of detectors and healers; `plugins`: a user's own classes.
- `watch`: a graph with detectors that look at every record.
- `usual`, `team_usual`: findings that good runs raise, too, and that are no alarm.
- `finding`, `describe`, `paths`: findings, findings in words, and the paths that prove them.
- `message_words`: the words of a message; `error_causes`: causes of errors outside a team.
- `run_so_far`, `five_answers`: a run as far as it was followed, and the five answers about it;
  `tallies`: what the former sums up;
- `headline`, `mended`: the sentence about a failed request, and mended findings;
  `answers`: these as data; `answer_facts`: what they have in common; `run_facts`: the causes
  and effects that they are taken from; `advice`: the last two.
  `rings`: rings of agents;
  `holders`: agents with work in front of them where nothing moves.
- `interventions`, `notes`: the means of healing, and notes to agents; `ladder`: the common part of
  the steps of healers; `siblings`: agents that were given like work.
- `turn_lengths`: the lengths of turns, for limits that are learned.
- `thresholds`: all thresholds in one place.
- `policy`: the treatment of findings; `policy_settings`, `settings_file`: read from a file.
- `spending_limits`: the limits of a team's spending, a part of a policy.
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
