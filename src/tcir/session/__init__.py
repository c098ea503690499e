"""One compilation, from text to code."""
