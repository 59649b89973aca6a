"""Known causes: faults that are injected into runs, and what they lead to.

- `fault`: one fault. `catalogue`: the kinds that there are; `kinds/`: one file a kind.
- `injector`: what a kind is made of. `payloads`: what a task's payloads mean.
- `injecting`: a team with faults around it. `playing`: a run with faults, in memory.
"""
