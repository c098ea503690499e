"""Narrow number formats with block scales: NVFP4, MXFP4, MXFP6, MXFP8 (see
docs/reference/formats.md).

This package needs only NumPy and ml_dtypes. It uses neither MLIR nor the simulated machine, which
has its own decoders.
"""

from .block import FORMATS as FORMATS
from .block import BlockFormat as BlockFormat
from .block import block_format as block_format
from .block_scaled import BlockScaled as BlockScaled
from .block_scaled import alpha as alpha
from .block_scaled import dequantise as dequantise
from .block_scaled import nvfp4_global_scale as nvfp4_global_scale
from .block_scaled import quantise as quantise
from .blocked import blocked_bytes as blocked_bytes
from .blocked import blocked_offset as blocked_offset
from .blocked import from_blocked as from_blocked
from .blocked import to_blocked as to_blocked
from .elements import ELEMENTS as ELEMENTS
from .elements import Element as Element
from .elements import decode as decode
from .elements import encode as encode
from .errors import FormatError as FormatError
from .packing import PADDED_UNITS as PADDED_UNITS
from .packing import pack as pack
from .packing import pack_units as pack_units
from .packing import packed_bytes as packed_bytes
from .packing import unpack as unpack
from .packing import unpack_units as unpack_units
from .scales import ROUNDINGS as ROUNDINGS
from .scales import decode_scale as decode_scale
from .scales import encode_ue4m3 as encode_ue4m3
from .scales import ue8m0_of_amax as ue8m0_of_amax

__all__ = [
    "ELEMENTS", "FORMATS", "PADDED_UNITS", "ROUNDINGS", "BlockFormat", "BlockScaled", "Element",
    "FormatError", "alpha", "block_format", "blocked_bytes", "blocked_offset", "decode",
    "decode_scale", "dequantise", "encode", "encode_ue4m3", "from_blocked", "nvfp4_global_scale",
    "pack", "pack_units", "packed_bytes", "quantise", "to_blocked", "ue8m0_of_amax", "unpack",
    "unpack_units",
]  # fmt: skip
