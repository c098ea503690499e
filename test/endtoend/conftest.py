"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def orders(request: pytest.FixtureRequest) -> int:
    """Completion orders per asynchronous level: ten, but two where slow tests are left out."""
    return 2 if "not slow" in request.config.getoption("-m") else 10
