"""The end of an attempt to run a launch in lockstep."""

from __future__ import annotations


class Abandoned(Exception):
    """The launch has to run again in another way; alone: every CTA on its own."""

    def __init__(self, why: str, alone: bool = False) -> None:
        super().__init__(why)
        self.alone = alone
