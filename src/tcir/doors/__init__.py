"""Parts that the doors for other programs share: their launches, and the execution of scripts."""
