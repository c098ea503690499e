"""The named pipelines, which are lists of passes with options."""
