"""Experiments: a grid of runs, its results, tables and charts.

- `grid`: the grid. `file`: a grid from a TOML file. `run`: carries it out, with `workers`.
- `results`: a row a run. `report`: tables and charts, with `table`, `charts` and `intervals`.
- `paper`, `paper_figures`: the tables of the paper. `ablation`: the share of each healing action.
- `trace_set`: a set of traces to publish.
"""
