"""The benchmark of failed conversations.

`conversation_benchmark` asks and scores, `fitting` fits the weights.
"""
