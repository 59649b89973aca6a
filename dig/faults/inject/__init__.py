"""Faults: what they are, and how they are put into a run. `kinds` has one file a kind."""
