"""The package whowhen."""
