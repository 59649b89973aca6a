"""What a run leaves, and how it is shown.

- `reader` reads trace files, strictly. `journal` writes them, in a run directory; `chain`, `files`
  and `locking` are parts of it. `recovery`: after a crash.
- `verify` checks them, independently. `replay` runs them again, by `drive`. `fork` lets them go on
  from some record, changed by `edits`. `verdict`: what comes of that, in words.
- `words`: findings, healing and results in words. `outline`: the graph in lines.
- `live`: a run in the terminal while it goes on, from `scene` (what is there), `shot` (a picture
  of one moment, as data) and `picture` (as lines).
- `summary`: a run in a few figures; `index`: those of a directory; `listing`: as a table.
- `reading`, `showing`, `stories`, `telling`: a run, or one thing of it, explained.
- `golden`, `difference`, `side_by_side`: a behaviour as a file, and where two runs part.
- `formats`, `importing`: to and from other programs.
"""
