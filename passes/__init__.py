"""The compiler passes, one per file, in a folder per stage. Helper modules are in the folder of the
passes that use them."""
