"""The package monitor."""
