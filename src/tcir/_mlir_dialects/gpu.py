"""The gpu dialect without op classes: tcir builds only two of its ops, but the bindings' module
defines 68 classes.
"""
