"""Faults to inject into a run.

- `fault`: one fault. `fault_catalogue`: the table of kinds. `injector`: their base; `kinds`: the
  kinds, one file per family; `payload_changes`: changed payloads. `injections`: the acts of faults
  in a trace.
- `faulty_agent`, `faulty_team`: faults around an agent and around a team.
- `game_day`: faults around a team of one's own.
"""
