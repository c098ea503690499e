"""Executing a program after every pass and comparing the results."""
