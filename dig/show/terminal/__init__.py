"""A run in the terminal while it goes on, and at its end.

`state` follows the records, `frame` is a picture of one moment as data, `picture` the same as
lines, `live` shows it.
"""
