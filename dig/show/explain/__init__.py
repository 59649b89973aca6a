"""A run, or one thing of it, explained.

`reading` reads a trace for the sake of it, `showing` finds what there is to say, `story` what
happened to one event, `telling` puts it into words.
"""
