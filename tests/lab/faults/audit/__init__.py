"""Audits the causal graphs of a set, from its files alone: `python -m tests.lab.faults.audit DIR`.

Written from docs/lab/faults-verification.md, docs/files.md and docs/meaning.md, with the
standard library alone and without dig, so that a mistake in the verification cannot hide itself
here. For each node it measures the number again, in trace, twin and baseline, and finds when it is
first seen; for each step it looks whether the rule exists, the relation holds and the order in time
is right; for each graph whether all of it lies between an injection and an alarm.
"""
