"""A run in the terminal while it goes on, and at its end.

`scene` is what is there, `shot` a picture of one moment as data, `picture` the same as lines,
`live` what is seen.
"""
