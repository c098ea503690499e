"""Rules that execute tile programs of the tc dialect on the machine."""
