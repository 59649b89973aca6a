"""Sets of faulty runs with known causes: how sets are made and read, and how answers are scored.

- `candidates`: configurations and faults to try. `hidden`: plays and verifies them. `generate`:
  finds verified instances.
- `storing`, `datasheet`: write a set. `instances`, `set_reading`: read one. `brought`: sets from
  elsewhere.
- `answer_file`: answers about the traces of a set. `attributing`: what attributors are given and
  say. `baselines`, `rules`, `surface`: simple ones. `oracle`: names causes by the twin of a run.
- `scores_answers`, `scores_detectors`, `scores_healing`: the scores. `trying`: whether
  experiments tell the culprit from other agents.
"""
