"""Code that the front ends (doors) for ONNX and JAX share: a whole model as one `linalg` program,
its line of the table of parts, and the check of the import.
"""
