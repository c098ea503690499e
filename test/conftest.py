"""Settings of all tests."""

import os

from hypothesis import settings

# No deadline: the first example pays for imports and compiled code. In CI always the same examples.
settings.register_profile("tcir", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("tcir")
