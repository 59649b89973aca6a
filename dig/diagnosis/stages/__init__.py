"""Attribution with a language model, in stages.

- `traces`: a trace as a conversation. `requests`: the texts of the requests. `stages`: one request
  per stage. `shapes`: the shapes of the answers. `asking`: requests with a cache.
- `deciding`: from testimony to an answer. `pipeline`: all of it. `plain_questions`: plain ways
  to ask, to compare with.
"""
