"""The judge: a rival of the monitor that reads the log while all agents wait.

`judge`: the base. `model`: a judge with a language model; `simulated`: one without.
"""
