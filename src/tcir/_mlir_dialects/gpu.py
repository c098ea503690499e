"""gpu without op classes: we build two of its ops, and the bindings' module makes 68 classes."""
