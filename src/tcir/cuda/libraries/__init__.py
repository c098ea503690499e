"""Host functions of CUDA's libraries, computed by numpy: importing registers them."""

from tcir.cuda.libraries import (  # noqa: F401
    cublas,
    cufft,
    curand,
    cusparse,
    nvrtc,
)
from tcir.cuda.libraries.functions import FUNCTIONS as FUNCTIONS
