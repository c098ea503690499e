"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def orders(request: pytest.FixtureRequest) -> int:
    """Completion orders per asynchronous level: two where slow tests are left out, otherwise three
    or `TCIR_ORDERS`."""
    quick = "not slow" in request.config.getoption("-m")
    return 2 if quick else int(os.environ.get("TCIR_ORDERS", 3))
