"""The package base."""
