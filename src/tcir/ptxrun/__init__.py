"""What `tc-run` does: a PTX kernel from the shell on the simulated machine, or into a bundle."""
