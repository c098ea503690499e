"""CuTe DSL kernels of `peers`, without a GPU, for `compile_time`: ``f16`` or ``nvfp4``.

The cubin stays inside the compiled host function.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

if sys.argv[1] == "f16":
    from cute_tensor_core import matmul_f16 as compile_it
else:
    import cute_blackwell

    compile_it = dict(cute_blackwell.KERNELS)["nvfp4"]

compile_it()
