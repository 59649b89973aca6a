"""The package plain."""
