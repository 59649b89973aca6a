"""Experiments on a failed run: replays with a change and without, and verdicts.

- `replays`: forks of the run, made once and judged. `fulfilment`: whether a change was carried out.
- `arms`: repeats with a change and without it, within a budget. `significance`: the verdict.
- `seats`: another member in an agent's seat, and what follows if that helps.
"""
