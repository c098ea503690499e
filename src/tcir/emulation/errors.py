"""The error of kernels that cannot be emulated."""

from tcir.errors import InputError


class EmulationError(InputError):
    """A kernel for sm_100a that cannot be rewritten for sm_90a; raised before any launch."""
