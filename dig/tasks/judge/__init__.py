"""The judge: a rival that reads what was said while all others wait."""
