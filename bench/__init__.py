"""Benchmarks: every figure beside a named alternative of the same run, as a ratio.

`make bench` runs all; `python -m bench NAME ...` some. Each file has functions that return a
`Table`; `bench.__main__` lists them.
"""
