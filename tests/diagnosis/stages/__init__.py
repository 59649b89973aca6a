"""The package stages."""
