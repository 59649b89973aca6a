"""`digmon check` as a gate: findings in runs, verdicts, and reports.

`checked` reads a run and its findings; `quality_gate` decides which findings fail the check,
without those of a baseline (`known_findings`); `reports` writes the verdicts as text, GitHub
annotations and JSON lines, `junit` for other programs.
"""
