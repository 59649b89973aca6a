"""The truth about a faulty run: a comparison with the twin, with a verification of each step.

- `verification`: follows the consequences of a fault, by `rules` and `relations`.
- `states`: deviations, by `measurements` and `onsets`. `baseline`: the usual spread of numbers.
- `matching`: counterparts in the twin. `dig.tasks.accounting` has the parts of the task.
"""
