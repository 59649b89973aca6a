"""The frameworks' own test suites, run bare, observed and healed, and compared test by test.

`make test-own-langgraph` runs one; `python -m tests.own NAME` is what it calls, with the Python of
an environment that has the framework and what its tests need.

- `suites`: where each suite comes from, how it is run, and which tests differ by design.
- `wrap_teams`: the pytest plugin that wraps each team.
- `stand_ins`: what a suite imports and no package index has.
"""
