"""The test suites that frameworks have of their own, run with each of their teams wrapped.

`python -m tests.adapters.own_suites langgraph --source DIR --python PATH --mode heal`
"""
