"""One run of a team: its configuration, how it is put together, carried out and measured.

- `team_run`: the configuration. `teams`, `methods`: its team and method by name.
- `arrange`: puts a run together. `execute`: carries it out. `fork`: forks it.
- `measures`: its measures.
"""
