"""The experiments: tasks that a team can be given, agents that solve them, and how they score.

- `count_frequency`: the task of counting the values of an array, with its tools and its scorer.
- `simulated`: general agents for it that run in virtual time, without a language model.
- `profile`: their habits, good and bad, each with its probability.
- `parts`: what they exchange: subproblems, raw data, partial counts and which ranges these cover.
- `counting`: how they count, with mistakes.
- `runs`: one run, put together: team, task, method and thresholds. `execute`: carries it out.
- `fork`: lets one go on from some record.
"""
