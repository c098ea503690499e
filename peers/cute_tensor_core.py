"""CuTe DSL matmuls on the tensor core: TMA, tcgen05, one CTA per tile."""

from collections.abc import Callable
from typing import Any

import cutlass
from cutlass import cute, pipeline, utils
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import make_fake_compact_tensor

F16, F32 = cutlass.Float16, cutlass.Float32
M, N, K = 128, 128, 256
TILE, STAGES = (128, 128, 64), 2


@cute.struct
class Storage:
    full_and_empty: cute.struct.MemRange[cutlass.Int64, STAGES * 2]
    accumulator: cute.struct.MemRange[cutlass.Int64, 2]
    tmem_base: cutlass.Int32


@cute.kernel
def _matmul(
    mma: cute.TiledMma,
    tma_a: cute.CopyAtom,
    a: cute.Tensor,
    tma_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
):
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    bx, by, _ = cute.arch.block_idx()
    smem = utils.SmemAllocator()
    storage = smem.allocate(Storage)
    sa = smem.allocate_tensor(F16, layout_a.outer, 128, swizzle=layout_a.inner)
    sb = smem.allocate_tensor(F16, layout_b.outer, 128, swizzle=layout_b.inner)
    barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
    tmem = utils.TmemAllocator(storage.tmem_base.ptr, barrier_for_retrieve=barrier)
    tmem.allocate(128)
    if warp == 0:
        cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    everyone = pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
    per_stage = cute.size_in_bytes(F16, cute.select(layout_a, mode=[0, 1, 2]))
    per_stage += cute.size_in_bytes(F16, cute.select(layout_b, mode=[0, 1, 2]))
    producer, consumer = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES,
        producer_group=one,
        consumer_group=one,
        tx_count=per_stage,
        barrier_storage=storage.full_and_empty.data_ptr(),
    ).make_participants()
    result_producer, result_consumer = pipeline.PipelineUmmaAsync.create(
        num_stages=1,
        producer_group=one,
        consumer_group=everyone,
        barrier_storage=storage.accumulator.data_ptr(),
    ).make_participants()

    ga = cute.local_tile(a, TILE, (bx, by, None), proj=(1, None, 1))
    gb = cute.local_tile(b, TILE, (bx, by, None), proj=(None, 1, 1))
    gc = cute.local_tile(c, TILE, (bx, by, None), proj=(1, 1, None))
    part = mma.get_slice(0)
    pa, pb, pc = part.partition_A(ga), part.partition_B(gb), part.partition_C(gc)
    fa, fb = mma.make_fragment_A(sa), mma.make_fragment_B(sb)
    accumulator = mma.make_fragment_C(mma.partition_shape_C(TILE[:2]))
    ta, xa = cpasync.tma_partition(
        tma_a, 0, cute.make_layout(1), cute.group_modes(sa, 0, 3), cute.group_modes(pa, 0, 3)
    )
    tb, xb = cpasync.tma_partition(
        tma_b, 0, cute.make_layout(1), cute.group_modes(sb, 0, 3), cute.group_modes(pb, 0, 3)
    )
    tmem.wait_for_alloc()
    base = tmem.retrieve_ptr(F32)
    accumulator = cute.make_tensor(base, accumulator.layout)

    load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), F32)
    split = (cute.make_layout(128), cute.make_layout(32))
    epilogue = cute.zipped_divide(accumulator[((None, None), 0, 0)], split)
    target = cute.zipped_divide(pc[((None, None), 0, 0)], split)
    copy = tcgen05.make_tmem_copy(load, epilogue[None, 0])
    mine = copy.get_slice(thread)
    from_tmem, to_global = mine.partition_S(epilogue), mine.partition_D(target)
    registers = cute.make_rmem_tensor(to_global[None, None, 0].shape, F32)
    narrow = cute.make_rmem_tensor(to_global[None, None, 0].shape, F16)

    if warp == 0:
        result = result_producer.acquire_and_advance()
        for _ in cutlass.range(cute.size(ga, mode=[2]), prefetch_stages=STAGES - 1):
            empty = producer.acquire_and_advance()
            cute.copy(
                tma_a, xa[None, empty.count], ta[None, empty.index], tma_bar_ptr=empty.barrier
            )
            cute.copy(
                tma_b, xb[None, empty.count], tb[None, empty.index], tma_bar_ptr=empty.barrier
            )
            full = consumer.wait_and_advance()
            for block in cutlass.range_constexpr(cute.size(fa, mode=[2])):
                at = (None, None, block, full.index)
                cute.gemm(mma, accumulator, fa[at], fb[at], accumulator)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            full.release()
        result.commit()
    tmem.relinquish_alloc_permit()
    done = result_consumer.wait_and_advance()
    for n in cutlass.range(cute.size(from_tmem, mode=[2])):
        cute.copy(copy, from_tmem[None, None, n], registers)
        cute.arch.fence_view_async_tmem_load()
        narrow.store(registers.load().to(F16))
        cute.autovec_copy(narrow, to_global[None, None, n])
    done.release()
    pipeline.sync(barrier_id=1)
    tmem.free(base)


@cute.jit
def _matmul_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = tcgen05.MmaF16BF16Op(
        F16, F32, (*TILE[:2], 16), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM,
        tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.K,
    )  # fmt: skip
    mma = cute.make_tiled_mma(op)
    layout_a = utils.sm100.make_smem_layout_a(mma, TILE, F16, STAGES)
    layout_b = utils.sm100.make_smem_layout_b(mma, TILE, F16, STAGES)
    load = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
    tma_a, ta = cute.nvgpu.make_tiled_tma_atom_A(
        load, a, cute.select(layout_a, mode=[0, 1, 2]), TILE, mma
    )
    tma_b, tb = cute.nvgpu.make_tiled_tma_atom_B(
        load, b, cute.select(layout_b, mode=[0, 1, 2]), TILE, mma
    )
    grid = cute.ceil_div((*c.layout.shape, 1), TILE[:2])
    _matmul(mma, tma_a, ta, tma_b, tb, c, layout_a, layout_b).launch(grid=grid, block=[128, 1, 1])


def matmul_f16() -> Any:
    def matrix(rows: int, columns: int) -> Any:
        return make_fake_compact_tensor(F16, (rows, columns), stride_order=(1, 0), assumed_align=32)

    options = "--gpu-arch sm_100a --keep-ptx"
    return cute.compile(
        _matmul_host, matrix(M, K), matrix(2 * N, K), matrix(M, 2 * N), options=options
    )


KERNELS: list[tuple[str, Callable[[], Any]]] = [("matmul_f16", matmul_f16)]
