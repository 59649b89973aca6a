"""Helpers that know nothing of dig: text, JSON values, ranges of numbers, HTML, redaction."""
