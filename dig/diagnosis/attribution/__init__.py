"""Attribution: which agent and which step of a run is at fault, from its signs.

`structural`: which signs explain the failure, and which explain one another. `work`: which events
of a run led to its answer. `spread`: the way from the cause to the end.
"""
