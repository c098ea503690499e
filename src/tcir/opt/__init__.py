"""The implementation of `tc-opt`: arguments, invocation, listings, printing."""
