"""The package graph."""
