"""Dialect modules that replace the bindings' modules, which import more than is needed."""
