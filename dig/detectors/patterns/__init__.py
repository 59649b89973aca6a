"""The package patterns."""
