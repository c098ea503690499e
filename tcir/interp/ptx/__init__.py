"""Rules that execute PTX text on the machine."""
