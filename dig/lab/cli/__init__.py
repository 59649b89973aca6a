"""The commands of the laboratory: `experiment`, `investigate`, `bench`."""
