"""Helpers that instructions share: element-wise application, rounding, exact arithmetic,
fragments."""
