"""Rules for instructions of a warpgroup (PTX ISA 9.7.15)."""
