"""One run of a team: configuration, arrangement, execution and measures.

- `team_run`: the configuration. `teams`, `methods`: its team and method by name.
- `arrange`: puts a run together. `execute`: carries it out. `run_fork`: forks it.
  `resumed_run`: goes on with it after its process ended. `crew`: the team that goes on.
- `measures`: its measures. `judging`: settings of the judge.
"""
