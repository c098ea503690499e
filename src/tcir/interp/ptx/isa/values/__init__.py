"""Helpers that several instructions use: elementwise application, rounding, exact arithmetic,
fragments.
"""
