"""Attribution: from signs to an answer.

- `structural`: which signs explain the failure, and which explain one another.
- `work`: which events of a run led to its answer, and which led nowhere.
"""
