"""A library of healthy teams and their broken twins: what the monitor says about each.

- `shapes`: what a shape is, and how its programs are watched. `report`: the two tables.
- `plain` (and `plain_failing`), `langgraph`, `openai_agents`, `autogen`, `agent_framework`,
  `a2a`, `ag2`, `crewai`, `google_adk`, `pydantic_ai`, `llama_index`: the shapes, a file a
  framework.
- `beyond`: healthy teams that are known to raise an alarm, and mistakes that raise none.

`python -m tests.library` runs those whose framework is installed (docs/lab/alarms-library.md).
"""
