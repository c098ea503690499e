"""Parts that several pipelines share: options, accepted forms of the input, and sequences of
passes."""
