"""Validation: executes a program after every pass and compares the results."""
