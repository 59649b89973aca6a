"""Attribution with a language model, in stages.

- `traces`: a trace as a conversation. `requests`: the texts of the requests. `stages`: one request
  a stage. `shapes`: the shapes of the answers. `asking`: requests with a cache.
- `deciding`: from testimony to an answer. `pipeline`: all of it. `rivals`: plain ways to ask.
"""
