"""Simulated agents: habits, and the way to work on a task.

`agent`: the agents. `profile`: their habits. `parts`: their payloads. `reading`, `classifying`:
their readings of numbers and of posts.
"""
