"""Dialect modules that replace those of the bindings, which import more than is needed."""
