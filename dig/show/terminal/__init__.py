"""A run in the terminal, live and at the end.

`terminal_state` follows the records, `frame` is a picture of one moment as data, `picture` the same
as lines, `live` shows it.
"""
