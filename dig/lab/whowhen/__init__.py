"""The benchmark of failed conversations: `whowhen` asks and scores, `fitting` fits the weights."""
