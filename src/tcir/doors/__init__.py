"""Parts that the doors, commands that run other frameworks' programs, share: their launches, and
the execution of scripts."""
