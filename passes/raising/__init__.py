"""From linalg to `tc` at the tensor level."""
