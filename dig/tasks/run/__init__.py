"""The package run."""
