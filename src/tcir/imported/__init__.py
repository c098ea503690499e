"""Code that the ONNX and JAX doors share: a whole model as one `linalg` program, its line of the
table, and the import as a checked step."""
