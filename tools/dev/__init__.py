"""Commands for developers of tcir: tests, checks, generated pages. Not installed."""
