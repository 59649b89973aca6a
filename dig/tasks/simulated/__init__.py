"""The package simulated."""
