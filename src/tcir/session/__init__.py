"""One compilation: from a module to code, with a report of every step."""
