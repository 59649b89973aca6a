"""A run in the terminal while it goes on, and at its end.

`state` is what is there, `frame` a picture of one moment as data, `picture` the same as lines,
`live` what is seen.
"""
