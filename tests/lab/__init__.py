"""The package lab."""
