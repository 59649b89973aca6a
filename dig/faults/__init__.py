"""Known causes: faults that are injected into runs, and what they lead to.

- `fault`: one fault. `catalogue`: the kinds that there are; `kinds/`: one file a kind.
- `injector`: what a kind is made of. `payloads`: what a task's payloads mean. `calls`: calls
  between async callables.
- `acting`: an agent with faults around it. `injecting`: a team of them. `placing`: where in a
  trace they acted.
- `playing`: a run with faults, in memory. `disturbing`: one that is kept. `game_day`: faults
  around one's own team.
- `verification`: what a fault led to, step by step, as a `causal_graph`. `course`: what became of
  everything in a run; `elements`, `pieces`: which part of the task it is about. `matching`: what
  corresponds to it in the twin. `measuring`, `measuring_events`: a number for each state that a
  thing could be in; `baseline`: how rare one is. `states`, `onsets`: what deviates, since when.
  `rules`, `relations`: which deviation may bring about which.
- `candidates`, `making`, `storing`, `instances`, `card`: a set of runs with a known cause.
- `answers`, `scoring`, `scores_*`: what answers, detectors and healing are worth. `attributors`:
  who answers.
"""

from .inject.catalogue import KINDS
from .inject.fault import Fault
from .inject.game_day import GameDay, around
from .inject.injecting import Injected
from .inject.playing import Played, play

__all__ = ["KINDS", "Fault", "GameDay", "Injected", "Played", "around", "play"]
