"""Simulated agents: habits, and the way to work on a task.

`simulated_agent`: the agents. `profile`: their habits. `parts`: their payloads. `message_reading`,
`classifying`: their readings of numbers and of posts. `remembering`: agents with a memory.
"""
