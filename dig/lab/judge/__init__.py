"""The judge: an agent that reads the log while all other agents wait; a rival of the monitor.

`judge`: the base. `model`: a judge with a language model; `simulated`: one without.
"""
