"""Rules that execute whole-tensor programs with numpy."""
