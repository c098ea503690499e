"""A program: its text, its launches, its buffers and inputs."""
