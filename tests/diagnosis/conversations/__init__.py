"""The package conversations."""
