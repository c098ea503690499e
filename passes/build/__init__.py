"""Builders and checks that the passes of all rooms share."""
