"""Dialect modules that stand before the bindings' own, which import more than we need."""
