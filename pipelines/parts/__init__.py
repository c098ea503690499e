"""Parts that several pipelines share: options, accepted forms, runs of passes."""
