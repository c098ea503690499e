"""Number formats and the arithmetic of the tensor cores."""
