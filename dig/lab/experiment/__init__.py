"""Experiments: a grid of runs, results, tables and charts.

- `grid`: the grid. `file`: a grid from a TOML file. `run`: carries it out, in several
  processes (`dig.runtime.workers`).
- `results`: one row per run. `row_measures`: what tables have of it. `statistics`: intervals and
  tests.
- `samples`: the rows by setting, method and seed. `effects`: differences of methods, in words, too.
- `experiment_report`: tables (`markdown_table`) and charts (`charts`). `paper`, `paper_figures`:
  the paper's tables and figures.
- `ablation`: what each part of healing contributes.
- `trace_set`: a set of traces to publish.
"""
