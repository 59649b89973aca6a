"""The truth about a faulty run: it is compared with its twin, and each step is verified."""
