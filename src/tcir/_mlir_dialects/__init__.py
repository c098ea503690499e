"""Dialect modules that are used in place of the bindings' own modules, because those import more
than tcir needs.
"""
