"""gpu without op classes: we build two of its ops, and the bindings' module defines 68 classes."""
