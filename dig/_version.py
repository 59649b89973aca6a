"""The version of dig: the only place that has it; the build and all exports read it from here."""

__version__ = "0.2.0"
