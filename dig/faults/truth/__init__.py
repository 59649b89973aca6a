"""The package truth."""
