"""The package benchmark."""
