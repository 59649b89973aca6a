"""What a run leaves, and everything that reads it again.

- `journal`: writes a run directory, and reads it strictly. `verify`: checks it independently.
- `replay`: a recorded run again, the same or changed.
- `otel`: to OpenTelemetry. `interchange`: to and from other programs. `usage`: tokens and costs.
"""
