"""Packages that suites import and no package index has; the folder is put into their path."""
