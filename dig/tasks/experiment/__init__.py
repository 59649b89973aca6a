"""Experiments: a grid of runs, its results, tables and charts."""
