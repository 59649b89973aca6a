"""Sets of faulty runs with known causes: how sets are made and read, and how answers are scored.

- `candidates`: configurations and faults to try. `generate`: finds verified instances.
- `storing`, `datasheet`: write a set. `instances`, `reading`: read one.
- `answers`: answers about the traces of a set. `attributing`: what attributors are given and
  say. `baselines`, `rules`: simple ones.
- `scores_answers`, `scores_detectors`, `scores_healing`: the scores.
"""
