"""Hostile inputs for every entrance: `python -m tests.fuzz --help`."""
