"""The failure patterns, one file each; `idle` is the clock of those about absence."""
