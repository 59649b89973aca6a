"""The commands of the laboratory: `experiment`, `faults`, `investigate`, `bench whowhen`."""
