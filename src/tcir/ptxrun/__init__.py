"""Implementation of `tc-run`: runs a PTX kernel on the simulated machine, or bundles it."""
