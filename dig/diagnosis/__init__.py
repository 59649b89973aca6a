"""The package diagnosis."""
