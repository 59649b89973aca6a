"""Experiments on a failed run: what is tried, and what comes of it.

- `attempts`: the parts of a run that try to solve a problem by one plan.
- `verdict`: what repeated replays, with a change and without it, say about the change.
"""
