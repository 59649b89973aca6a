"""The experiments: tasks that a team can be given, agents that solve them, and how they score.

- `task`: what a task is. `catalogue`: those that can be named.
- `count_frequency`, `newsgroups`: counting the values of an array, and the topics of posts, with
  tools and scorer. `frequency`: what they have in common.
- `simulated`: general agents that run in virtual time, without a language model.
- `profile`: their habits, good and bad, each with its probability.
- `parts`: what they exchange: subproblems, raw data, partial counts and which ranges these cover.
- `reading`: how they read. `counting`: numbers. `classifying`: posts.
- `runs`: the configuration of a run: the names of all that it is made of, and thresholds.
- `teams`: who works on a task. `methods`: what is done about failures. `arrange`: makes a run of
  these. `execute`: carries it out.
- `measures`: what is measured of it.
- `judge`: what a judge says; `judge_simulated` and `judge_model`: who judges.
- `experiment`: grids of runs. `experiment_runs`: carries them out; `experiment_file`: one's own;
  `experiment_results`: what is kept; `tables`, `charts`: what is shown; `ablation`,
  `experiment_traces`: what healing contributes, and traces to be handed on.
- `fork`: lets one go on from some record.
"""
