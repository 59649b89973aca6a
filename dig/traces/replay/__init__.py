"""A recorded run again.

`drive` drives a monitor through it, `rerun` compares; `fork` lets it go on from some record,
changed by `edits`. `verdict`: what comes of that, in words.
"""
