"""The package journal."""
