"""Elementwise instructions: makes ops from numpy functions over the lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Flow, PredicateFlow, Unknown, any_bit, as_bits, whole
from tcir.interp.ptx.kernels.traced import are_lanes
from tcir.interp.ptx.lanes import FULL, LANE_MASK, bits
from tcir.interp.ptx.op import Compute, Op
from tcir.interp.ptx.registers import PREDICATE, VIEW_DTYPES, view
from tcir.interp.ptx.syntax import Type
from tcir.interp.ptx.warp import Warp


def elementwise(
    d: Decode,
    fn: Callable[..., np.ndarray],
    dst: int,
    out: int,
    sources: tuple[int, ...],
    views: tuple[int, ...],
    flow: Flow = whole,
    moved: int = 0,
) -> Op:
    """Creates the op dst = fn(sources…), lane by lane. out: register view of the result. views:
    register views of the sources

    flow: computes the undefined bits of the result from the undefined bits of the sources. moved:
    see `Compute`.
    """
    site = d.site
    compute = Compute(fn, tuple(zip(sources, views, strict=True)), ((dst, out),), moved=moved)

    def unknown(w: Warp, m: int) -> Unknown | None:
        values = [w.v[n][s] for n, s in zip(views, sources, strict=True)]
        return w.result(sources, m, site, lambda bits: flow(fn, values, bits, VIEW_DTYPES[out]))

    if len(sources) == 1:
        a = sources[0]
        va = views[0]

        def one(w: Warp, m: int) -> None:
            undef = w.undef
            lost = unknown(w, m) if undef[a] & m else None
            if m == FULL:
                w.v[out][dst][:] = fn(w.v[va][a])
            else:
                np.copyto(w.v[out][dst], fn(w.v[va][a]), where=LANE_MASK[m], casting="unsafe")
            undef[dst] &= ~m
            if lost:
                w.define(dst, m, lost)

        return d.computing(one, compute)
    if len(sources) == 2 and isinstance(fn, np.ufunc):
        a, b = sources
        va, vb = views

        def two(w: Warp, m: int) -> None:
            undef = w.undef
            lost = unknown(w, m) if (undef[a] | undef[b]) & m else None
            v = w.v
            if m == FULL:
                fn(v[va][a], v[vb][b], out=v[out][dst])
            else:
                fn(v[va][a], v[vb][b], out=v[out][dst], where=LANE_MASK[m])
            undef[dst] &= ~m
            if lost:
                w.define(dst, m, lost)

        return d.computing(two, compute)
    pairs = tuple(zip(views, sources, strict=True))

    def many(w: Warp, m: int) -> None:
        undef, lost = w.undef, None
        for s in sources:
            if undef[s] & m:
                lost = unknown(w, m)
                break
        v = w.v
        result = fn(*[v[n][s] for n, s in pairs])
        if m == FULL:
            v[out][dst][:] = result
        else:
            np.copyto(v[out][dst], result, where=LANE_MASK[m], casting="unsafe")
        undef[dst] &= ~m
        if lost:
            w.define(dst, m, lost)

    return d.computing(many, compute)


def parts(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The packed elements of each number, lowest bits first."""
    whole = values if are_lanes(values) else np.ascontiguousarray(values)
    return whole.view(dtype)


def predicate(
    d: Decode,
    fn: Callable[..., np.ndarray],
    sources: tuple[int, ...],
    source_view: int,
    dst: int,
    flow: PredicateFlow = any_bit,
) -> Op:
    """Creates the op dst = fn(sources…) for a predicate dst, lane by lane. flow: computes the lanes
    in which the predicate is undefined
    """
    site = d.site

    def unknown(w: Warp, m: int) -> Unknown | None:
        values = [w.v[source_view][s] for s in sources]
        return w.result(sources, m, site, lambda b: as_bits(flow(fn, values, b)))

    def run(w: Warp, m: int) -> None:
        undef, lost = w.undef, None
        v = w.v[source_view]
        for s in sources:
            if undef[s] & m:
                lost = unknown(w, m)
                break
        found = bits(fn(*[v[s] for s in sources]))
        w.p[dst] = w.p[dst] & ~m | found & m
        undef[dst] &= ~m
        if lost:
            w.define(dst, m, lost)

    pairs = tuple((s, source_view) for s in sources)
    return d.computing(run, Compute(fn, pairs, ((dst, PREDICATE),)))


def counted(op: Op, products: int) -> Op:
    """Makes the op count `products` multiplications per active lane, and returns it."""
    compute = op.run

    def run(w: Warp, m: int) -> None:
        w.agent.machine.counters.simt_products += products * m.bit_count()
        compute(w, m)

    op.run = run
    if op.compute is not None:
        op.compute = replace(op.compute, products=products)
    return op


def same_type(
    d: Decode, fn: Callable[..., np.ndarray], kind: Type, count: int, flow: Flow = whole,
    moved: int = 0,
) -> Op:  # fmt: skip
    """Creates the op of `op d, a, b, …`, whose operands all have one type. moved: see `Compute`"""
    d.done(count + 1)
    n = view(kind)
    dst = d.dst(d.operands[0], kind)
    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(d, fn, dst, n, sources, (n,) * count, flow, moved)
