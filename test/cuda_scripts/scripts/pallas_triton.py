"""JAX Pallas: an elementwise kernel of blocks by the Triton backend, in jit and with an alias.

With the argument "outside" the kernel stores one element too far.
"""

import sys

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

FAR = int("outside" in sys.argv)


def add_kernel(x, y, o):
    o[...] = x[...] + y[...]


def double_kernel(_x, o):
    start = pl.program_id(0) + FAR
    plgpu.store(o.at[pl.ds(start, 64)], plgpu.load(o.at[pl.ds(0, 64)]) * 2)


@jax.jit
def add(x, y):
    block = pl.BlockSpec((64,), lambda i: (i,))
    call = pl.pallas_call(
        add_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(4,),
        in_specs=[block, block],
        out_specs=block,
        compiler_params=plgpu.CompilerParams(num_warps=2),
    )
    return call(x, y) * 2


x = jnp.arange(256, dtype=jnp.bfloat16)
double = pl.pallas_call(
    double_kernel,
    out_shape=jax.ShapeDtypeStruct((64,), x.dtype),
    grid=(1,),
    input_output_aliases={0: 0},
    compiler_params=plgpu.CompilerParams(num_warps=1),
)
print("right" if (add(x, x) == 4 * x).all() and (double(x[:64]) == 2 * x[:64]).all() else "wrong")
