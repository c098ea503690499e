"""What the convolution pipelines share: from linalg to ``tc.conv2d`` that TMA can encode."""

from __future__ import annotations

from tcir.passes.convert_repack_to_simt import ConvertRepackToSimt
from tcir.passes.raise_to_tc import RaiseToTc
from tcir.passes.split_launches import SplitLaunches
from tcir.pipeline import Pass


def raise_convolution() -> list[Pass]:
    """The passes before tiling."""
    return [RaiseToTc(), SplitLaunches(), ConvertRepackToSimt()]
