"""Pages, figures, tables, explanations and reports of runs.

- `page`: the report, one HTML file; `server`: the same page for runs that are going on.
- `terminal`: the live picture. `figure`: SVG, PNG and PDF. `summary_text`: the result of a run.
- `explain`: the story of an event, activation, agent or finding. `compare`: two runs side by side.
- `gate`: what fails `digmon check`, and its reports for people and for CI servers.
- `runs`: the table of runs. `outline`: a run in few lines. `verdict`: the result of a replay.
"""
