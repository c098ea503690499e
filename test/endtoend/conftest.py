"""What the end-to-end tests share."""

from __future__ import annotations

import pytest


@pytest.fixture
def orders(request: pytest.FixtureRequest) -> int:
    """Completion orders per asynchronous level: ten in the slow tier."""
    everything = "slow" not in (request.config.getoption("-m") or "not slow")
    return 10 if everything or request.node.get_closest_marker("slow") else 2
