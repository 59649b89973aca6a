"""The judge: an agent that reads the log while all other agents wait; a rival of the monitor.

`reviewer`: the pauses of a run in which an agent reads the log. `judge`: the base of both judges.
`model_judge`: a judge with a language model; `simulated`: one without, which reads by the rules of
`log_reader`. `judged`: its findings, and the healing that it asks for.
"""
