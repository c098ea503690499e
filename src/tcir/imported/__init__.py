"""What the doors of ONNX and JAX share: a whole model as one program of `linalg`, its row of the
table, and the import as a checked step."""
