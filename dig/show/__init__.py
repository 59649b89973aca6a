"""Pages, figures, tables, explanations and reports of runs.

- `page`: the report, one HTML file; `server`: the same page for runs that are going on.
- `terminal`: the live picture. `figure`: SVG, PNG and PDF. `summary_text`: the result of a run.
- `explain`: the story of an event, activation, agent or finding. `compare`: two runs side by side.
- `gate`: what fails `digmon check`, and its reports for people and for CI servers.
- `runs`: the table of runs. `replay_lines`: the results of `digmon verify` and `digmon replay`.
- `follower`: a run so far. `document`: the document of a diagnosis. `cause`: the cause of a failed
  run, taken from a diagnosis.
"""
