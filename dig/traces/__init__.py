"""Traces: write, check, replay, export and import.

- `journal`: writes a run directory, and reads it strictly. `verify`: checks it independently.
- `run`: a recorded run as events and activations. `replay`: repeats or forks a recorded run.
- `otel`: to OpenTelemetry. `interchange`: to and from other programs. `usage`: tokens and costs.
"""
