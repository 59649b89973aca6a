"""`digmon check` as a gate: what was found in runs, what of it fails the check, and reports of it.

`checked` reads a run and finds what is in it; `verdict` decides what fails the check, with the
findings that are known already (`baseline`); `reports` writes the verdicts as text and as GitHub
annotations, `junit` and `sarif` for other programs.
"""
