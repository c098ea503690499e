"""Builders and checks shared by the passes of all folders."""
