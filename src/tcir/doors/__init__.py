"""What the doors for other programs share: their launches, and how their scripts are run."""
