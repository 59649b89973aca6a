"""The package inject."""
