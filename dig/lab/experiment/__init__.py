"""Experiments: a grid of runs, results, tables and charts.

- `grid`: the grid. `file`: a grid from a TOML file. `run`: carries it out, with `workers`.
- `results`: a row a run. `measures`: what tables have of it. `statistics`: intervals and tests.
- `samples`: the rows by setting, method and seed. `effects`: differences of methods, in words, too.
- `report`: tables (`table`) and charts (`charts`). `paper`, `paper_figures`: the paper's tables.
- `ablation`: what each part of healing contributes.
- `trace_set`: a set of traces to publish.
"""
