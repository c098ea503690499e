"""Bugs planted in compiled programs, and the tests that must notice each of them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for endtoend
