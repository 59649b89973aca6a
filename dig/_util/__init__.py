"""The package util."""
