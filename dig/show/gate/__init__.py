"""`digmon check` as a gate: findings in runs, verdicts, and reports.

`checked` reads a run and its findings; `quality_gate` decides what fails the check, with the
findings that are known already (`baseline`); `reports` writes the verdicts as text and as GitHub
annotations, `junit` and `sarif` for other programs.
"""
