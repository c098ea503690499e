"""The implementation of `tc-opt`: arguments, execution of one command line, listings, printing."""
