"""What `tc-opt` does: arguments, run, listings, printing."""
