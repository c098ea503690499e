"""Command lines, which only parse arguments and call the package."""
