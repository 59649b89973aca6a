"""Simulated agents: their habits and how they work on a task."""
