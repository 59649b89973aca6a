"""The package judge."""
