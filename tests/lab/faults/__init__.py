"""The package faults."""
