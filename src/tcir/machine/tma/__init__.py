"""The TMA engine and its tensor maps."""
