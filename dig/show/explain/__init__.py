"""Explanations of a run, or of an event, an activation, an agent or a finding in the run.

`explainer` reads a trace and explains its findings, `facts` collects the data for an explanation,
`story` the life of one event, `lines` puts the data into words.
"""
