"""The package experiment."""
