"""Recognition of attention in plain ``linalg``: expressions of elements, and patterns of such
expressions."""
