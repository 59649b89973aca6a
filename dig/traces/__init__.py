"""What a run leaves, and how it is shown.

- `reader` reads trace files, strictly. `journal` writes them, in a run directory; `chain`, `files`
  and `locking` are parts of it. `recovery`: after a crash. `verify` checks them, independently.
- `replay`: a recorded run again, the same or changed.
- `terminal`: a run while it goes on. `overview`: runs in a few figures. `stories`: a run, or one
  thing of it, explained. `comparing`: two runs. `drawing`: a run as a picture. `words` and
  `outline`: how they speak.
- `otel`: to OpenTelemetry. `formats`, `importing`: to and from other programs.
"""
