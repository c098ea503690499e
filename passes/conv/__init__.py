"""Convolutions: schedules, their cost, and the passes that tile."""
