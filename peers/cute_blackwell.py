"""CuTe DSL's primitives: features only tcgen05 has (shifting A, lane masks, block scales, pairs).

Every kernel copies one image into shared memory, issues its tcgen05 instructions from one thread
and writes the accumulator, 128 lanes per CTA. Matrices are K-major without swizzle: the 16-byte
columns follow each other, rows within them (`cases_blackwell.columns`).
"""

from collections.abc import Callable
from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.experimental import primitives as prims

F16, F32, I32 = cutlass.Float16, cutlass.Float32, cutlass.Int32
ONE, TWO = prims.CTAGroup.CTA_1, prims.CTAGroup.CTA_2
SMEM = cutlass.AddressSpace.smem
KERNELS: list[tuple[str, Callable[[], Any]]] = []


def kernel(*shapes: tuple[int, ...]) -> Callable[[Any], Any]:
    """Registers a host function whose parameters are row-major arrays of 32-bit words."""

    def compile_it(host: Any) -> Callable[[], Any]:
        def build() -> Any:
            arguments = [
                make_fake_compact_tensor(
                    I32, shape, stride_order=tuple(reversed(range(len(shape)))), assumed_align=16
                )
                for shape in shapes
            ]
            return cute.compile(host, *arguments, options="--gpu-arch sm_100a --keep-ptx")

        return build

    def register(host: Any) -> Any:
        KERNELS.append((host.__name__.removesuffix("_host").lstrip("_"), compile_it(host)))
        return host

    return register


def matrix(smem: Any, byte: Any, rows: int) -> Any:
    """The descriptor of `rows` rows whose first 16-byte column starts at `byte`."""
    return prims.Tcgen05SmemDesc.build(
        smem.data_ptr().toint() + byte, leading_byte_offset=16 * rows, stride_byte_offset=128
    )


def tmem(address: Any) -> Any:
    return prims.TmemAddr(address).as_ptr(I32)


@cute.jit
def start(image: cute.Tensor, columns: cutlass.Constexpr, group: cutlass.Constexpr):
    """The image in shared memory, tensor memory and an mbarrier, known to all threads."""
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    block, _, _ = cute.arch.block_idx()
    words = image.shape[1]
    smem = cutlass.Array(I32, words, space=SMEM, alignment=128)
    slot = cutlass.Array(I32, 1, space=SMEM, alignment=16)
    done = cutlass.Array(cutlass.Int64, 1, space=SMEM, alignment=8)
    for n in cutlass.range(words // 128):
        smem[n * 128 + thread] = image[block, n * 128 + thread]
    if warp == 0:
        prims.tcgen05_alloc(slot, columns, group=group)
        prims.tcgen05_relinquish_alloc_permit(group=group)
    if thread == 0:
        prims.mbarrier_init(done, 1)
    prims.fence_mbarrier_init()
    prims.fence_proxy("async_shared", space=prims.SharedSpace.shared_cta)
    synchronise()
    return smem, slot[0], done


@cute.jit
def synchronise():
    prims.tcgen05_fence("before_thread_sync")
    cute.arch.sync_threads()
    prims.tcgen05_fence("after_thread_sync")


@cute.jit
def wait(done: Any, parity: cutlass.Constexpr):
    while not prims.mbarrier_try_wait_parity(done, parity):
        pass
    prims.tcgen05_fence("after_thread_sync")


@cute.jit
def quarter(base: Any):
    """The address of the calling warp's 32 lanes."""
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    return base + (warp << 21)


@cute.jit
def store(base: Any, out: cute.Tensor):
    """Writes the accumulator's row of each thread."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    n = out.shape[1]
    values = prims.tcgen05_ld("32x32b", tmem(quarter(base)), num=n)
    prims.tcgen05_wait("load")
    for i in cutlass.range_constexpr(n):
        out[block * 128 + thread, i] = values[i]
    synchronise()


@cute.jit
def free(base: Any, columns: cutlass.Constexpr, group: cutlass.Constexpr):
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if warp == 0:
        prims.tcgen05_dealloc(tmem(base), columns, group=group)


@cute.jit
def fill(base: Any, a: cute.Tensor):
    """A's rows from global memory into lanes, 8 columns."""
    thread, _, _ = cute.arch.thread_idx()
    words = cute.make_rmem_tensor((8,), I32)
    for i in cutlass.range_constexpr(8):
        words[i] = a[thread, i]
    values = cutlass.Vector(words.load().ir_value(), dtype=I32)
    prims.tcgen05_st("32x32b", tmem(quarter(base)), values)
    prims.tcgen05_wait("store")
    synchronise()


# --- A in tensor memory, shifted ---------------------------------------------------------------

HALF = prims.Tcgen05InstrDesc.build(c_dtype=F32, a_dtype=F16, b_dtype=F16, n_dim=16, m_dim=128)


@cute.kernel
def _ashift_taps(image: cute.Tensor, a: cute.Tensor, out: cute.Tensor):
    """D[p] = sum of A[p + s] W[s] for s = 0, 1, 2 inside every 32 rows."""
    thread, _, _ = cute.arch.thread_idx()
    smem, base, done = start(image, 32, ONE)
    fill(base + 16, a)
    if thread == 0:
        for s in cutlass.range_constexpr(3):
            prims.tcgen05_mma(
                "f16", ONE, tmem(base), tmem(base + 16), matrix(smem, 512 * s, 16), HALF, s > 0,
                a_shift=s < 2,
            )  # fmt: skip
        prims.tcgen05_commit(done, group=ONE)
    wait(done, 0)
    store(base, out)
    free(base, 32, ONE)


@kernel((1, 384), (128, 8), (128, 16))
@cute.jit
def _ashift_taps_host(image: cute.Tensor, a: cute.Tensor, out: cute.Tensor):
    _ashift_taps(image, a, out).launch(grid=[1, 1, 1], block=[128, 1, 1])


@cute.kernel
def _ashift_halo(image: cute.Tensor, a: cute.Tensor, out: cute.Tensor):
    """The same over 130 rows: cp.4x256b copies the row after every 32 in after each shift."""
    thread, _, _ = cute.arch.thread_idx()
    smem, base, done = start(image, 32, ONE)
    fill(base + 16, a)
    if thread == 0:
        for s in cutlass.range_constexpr(3):
            if cutlass.const_expr(s > 0):
                rows = matrix(smem, 1536 + 256 * (s - 1), 8)
                last = tmem(base + (31 << 16) + 16)
                prims.tcgen05_cp("shape_4x256b", last, rows, group=ONE)
            prims.tcgen05_mma(
                "f16", ONE, tmem(base), tmem(base + 16), matrix(smem, 512 * s, 16), HALF, s > 0,
                a_shift=s < 2,
            )  # fmt: skip
            prims.tcgen05_commit(done, group=ONE)
            wait(done, s % 2)
    synchronise()
    store(base, out)
    free(base, 32, ONE)


@kernel((1, 512), (128, 8), (128, 16))
@cute.jit
def _ashift_halo_host(image: cute.Tensor, a: cute.Tensor, out: cute.Tensor):
    _ashift_halo(image, a, out).launch(grid=[1, 1, 1], block=[128, 1, 1])


@cute.kernel
def _lane_mask(image: cute.Tensor, out: cute.Tensor):
    """D = A B0; then D = D / 4 + A B1 in the lanes that the mask enables."""
    thread, _, _ = cute.arch.thread_idx()
    smem, base, done = start(image, 32, ONE)
    if thread == 0:
        a = matrix(smem, 0, 128)
        prims.tcgen05_mma("f16", ONE, tmem(base), a, matrix(smem, 4096, 16), HALF, False)
        quarters = (0x0000FFFF, 0x55555555, 0, 0x80000001 - 2**32)
        mask = cutlass.Vector.from_elements([I32(q) for q in quarters], dtype=I32)
        prims.tcgen05_mma(
            "f16", ONE, tmem(base), a, matrix(smem, 4608, 16), HALF, True,
            scale_input_d=2, write_disable_mask=mask,
        )  # fmt: skip
        prims.tcgen05_commit(done, group=ONE)
    wait(done, 0)
    store(base, out)
    free(base, 32, ONE)


@kernel((1, 1280), (128, 16))
@cute.jit
def _lane_mask_host(image: cute.Tensor, out: cute.Tensor):
    _lane_mask(image, out).launch(grid=[1, 1, 1], block=[128, 1, 1])


# --- block scales -------------------------------------------------------------------------------


@cute.kernel
def _nvfp4(image: cute.Tensor, out: cute.Tensor):
    """128x64x128, two steps of K = 64, each with its own four scales per row."""
    thread, _, _ = cute.arch.thread_idx()
    smem, base, done = start(image, 128, ONE)
    idesc = prims.Tcgen05MxOmmaInstrDesc.build(
        a_dtype=cutlass.Float4E2M1FN,
        b_dtype=cutlass.Float4E2M1FN,
        scale_format=prims.MxScaleFormat.UE4M3,
        n_dim=64,
        m_dim=128,
    )
    if thread == 0:
        for step in cutlass.range_constexpr(2):
            scales = 12288 + 1024 * step
            for operand in cutlass.range_constexpr(2):
                prims.tcgen05_cp(
                    "shape_32x128b",
                    tmem(base + 64 + 8 * step + 4 * operand),
                    matrix(smem, scales + 512 * operand, 32),
                    group=ONE,
                    multicast="warpx4",
                )
            prims.tcgen05_mma_block_scale(
                "mxf4nvf4", ONE, tmem(base), matrix(smem, 4096 * step, 128),
                matrix(smem, 8192 + 2048 * step, 64), idesc, step > 0,
                tmem(base + 64 + 8 * step), tmem(base + 68 + 8 * step),
                scale_vec_size=prims.Tcgen05MMAScaleVecSize.BLOCK16,
            )  # fmt: skip
        prims.tcgen05_commit(done, group=ONE)
    wait(done, 0)
    store(base, out)
    free(base, 128, ONE)


@kernel((1, 3584), (128, 64))
@cute.jit
def _nvfp4_host(image: cute.Tensor, out: cute.Tensor):
    _nvfp4(image, out).launch(grid=[1, 1, 1], block=[128, 1, 1])


@cute.kernel
def _mxfp8(image: cute.Tensor, out: cute.Tensor):
    """128x64x128 in e4m3: four steps share one column of scales, told apart by their ids."""
    thread, _, _ = cute.arch.thread_idx()
    smem, base, done = start(image, 128, ONE)
    if thread == 0:
        for operand in cutlass.range_constexpr(2):
            prims.tcgen05_cp(
                "shape_32x128b",
                tmem(base + 64 + 4 * operand),
                matrix(smem, 24576 + 512 * operand, 32),
                group=ONE,
                multicast="warpx4",
            )
        for step in cutlass.range_constexpr(4):
            idesc = prims.Tcgen05MxInstrDesc.build(
                a_dtype=cutlass.Float8E4M3FN,
                b_dtype=cutlass.Float8E4M3FN,
                scale_format=prims.MxScaleFormat.E8M0,
                n_dim=64,
                m_dim=128,
                a_sf_id=step,
                b_sf_id=step,
            )
            prims.tcgen05_mma_block_scale(
                "mxf8f6f4", ONE, tmem(base), matrix(smem, 4096 * step, 128),
                matrix(smem, 16384 + 2048 * step, 64), idesc, step > 0,
                tmem(base + 64), tmem(base + 68),
            )  # fmt: skip
        prims.tcgen05_commit(done, group=ONE)
    wait(done, 0)
    store(base, out)
    free(base, 128, ONE)


@kernel((1, 6400), (128, 64))
@cute.jit
def _mxfp8_host(image: cute.Tensor, out: cute.Tensor):
    _mxfp8(image, out).launch(grid=[1, 1, 1], block=[128, 1, 1])


# --- two CTAs -----------------------------------------------------------------------------------


@cute.jit
def pair_barrier():
    prims.tcgen05_fence("before_thread_sync")
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    prims.tcgen05_fence("after_thread_sync")


@cute.kernel
def _matmul_pair(image: cute.Tensor, out: cute.Tensor):
    """256x64x64 in f16: each CTA of a pair loads 128 rows of A and 32 rows of B."""
    thread, _, _ = cute.arch.thread_idx()
    rank = cute.arch.block_idx_in_cluster()
    smem, base, done = start(image, 64, TWO)
    idesc = prims.Tcgen05InstrDesc.build(c_dtype=F32, a_dtype=F16, b_dtype=F16, n_dim=64, m_dim=256)
    pair_barrier()
    if rank == 0 and thread == 0:
        for step in cutlass.range_constexpr(4):
            prims.tcgen05_mma(
                "f16", TWO, tmem(base), matrix(smem, 4096 * step, 128),
                matrix(smem, 16384 + 1024 * step, 32), idesc, step > 0,
            )  # fmt: skip
        prims.tcgen05_commit(done, multicast_mask=3, group=TWO)
    wait(done, 0)
    store(base, out)
    pair_barrier()
    free(base, 64, TWO)


@kernel((2, 5120), (256, 64))
@cute.jit
def _matmul_pair_host(image: cute.Tensor, out: cute.Tensor):
    _matmul_pair(image, out).launch(grid=[2, 1, 1], block=[128, 1, 1], cluster=[2, 1, 1])
