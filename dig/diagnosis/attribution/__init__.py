"""Attribution: the agent and the step at fault in a run, by signs.

`structural`: which signs explain the failure, and which explain one another. `work`: which events
of a run led to its answer. `lineage`: the way from the cause to the end.
"""
