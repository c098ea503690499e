"""Convolutions: schedules, their cost model, and the passes that tile convolutions."""
