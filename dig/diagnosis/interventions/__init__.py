"""Interventions: changes of a recorded run, and rules and a model to propose changes.

- `dig.traces.replay.kinds`: the kinds, their order from small to large, their JSON, and what they
  are in words.
- `proposing`: changes by what the records show about an agent. `model_proposals`: by a language
  model, which also judges what words mean. `described`: an activation in words, for a model.
  `secrecy`: keeps the right answer out of them. `recorded`: a decision of the run, as an edit.
"""
