"""The journal: written, read, verified line by line and recovered.

- `journal`: a run directory and its journal. `appending`: writes lines to its `segments`.
- `reader`: reads and checks a trace. `stored`: records that stay in their files.
- `recovery`: sets a torn tail aside. `locking`: one writer per journal.
- `durable_files`: whole files beside the trace. `exchanges`: the raw exchanges with models.
"""
