"""The benchmark of failed conversations, Who&When: `python -m bench.whowhen DIR`.

`conversation_benchmark` asks and scores, `fitting` fits the weights that `dig` ships.
"""
