"""JAX Pallas: a pipelined sum and JAX's own Blackwell matrix product by the Mosaic GPU backend."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas.ops.gpu import blackwell_matmul_mgpu

BOXES = (plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))
SPEC = plgpu.BlockSpec((64, 64), lambda i, j: (i, j), transforms=BOXES)


def tile(_index, x, y, out):
    out[...] = x[...] + y[...]


def body(x, y, out):
    plgpu.emit_pipeline(
        tile, grid=(2, 2), in_specs=[SPEC, SPEC], out_specs=[SPEC], max_concurrent_steps=2
    )(x, y, out)


add = plgpu.kernel(
    body, out_type=jax.ShapeDtypeStruct((128, 128), "float32"), grid=(1,), grid_names=("x",)
)
x = jnp.arange(128 * 128.0).reshape(128, 128)
right = (jax.jit(add)(x, x) == 2 * x).all()

a, b = (np.random.default_rng(n).integers(-2, 3, (128, 128)).astype("float16") for n in range(2))
tuning = blackwell_matmul_mgpu.TuningConfig(
    tile_m=128, tile_n=128, tile_k=64, max_concurrent_steps=2, collective=False, epilogue_tile_n=32
)
product = blackwell_matmul_mgpu.matmul_kernel(jnp.asarray(a), jnp.asarray(b), tuning)
right = right and (product == a.astype("float32") @ b.astype("float32")).all()
print("right" if right else "wrong")
