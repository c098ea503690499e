"""Everything about one program: its text, its launches, its buffers and its inputs."""
