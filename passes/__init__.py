"""The passes, one per file, in a folder per stage; helpers are beside the passes that use them."""
