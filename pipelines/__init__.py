"""Named pipelines: lists of passes with options."""
