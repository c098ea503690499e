"""Passes, pipelines, their options and their text."""
