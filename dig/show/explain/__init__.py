"""A run, or one thing of it, explained.

`explainer` reads a trace and explains its findings, `showing` collects the data about one thing,
`story` the events in the life of one event, `telling` puts the data into words.
"""
