"""Command-line programs, which only parse arguments and call the package."""
