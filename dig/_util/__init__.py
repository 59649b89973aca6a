"""Helpers, independent of the rest of dig.

`text`: text safe on a terminal. `json_values`: plain JSON. `json_text`: JSON, read strictly.
`ranges`: sets of numbers. `html`: small tables. `redaction`: masked secrets. `frozen`: cheap
immutable types.
`files`: whole reads of regular files. `interrupts`: Ctrl-C at a moment that suits the work.
`intervals`: intervals of shares. `registry`: tables to which
the laboratory adds rows. `on_demand`: names of a package that are imported when asked for.
`extras`: packages that only an extra installs.
"""
