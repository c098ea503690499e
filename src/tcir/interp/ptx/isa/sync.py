"""Barriers and fences (PTX ISA 9.7.13 "bar", "barrier", "membar", "fence")."""

from __future__ import annotations

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import Blocking, Op, no_effect, synchronise_lanes
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Site
from tcir.interp.ptx.warp import Warp

_U32_TYPE = TYPES["u32"]


def uniform(w: Warp, slot: int, m: int, site: Site, what: str, view: int = U32) -> int:
    """The value of a slot, which must be the same in all active lanes."""
    if w.undef[slot] & m:
        w.read_undefined(site, (slot,), m)
    values = w.v[view][slot][LANE_INDICES[m]]
    if (values != values[0]).any():
        found = sorted({int(v) for v in values})[:4]
        raise w.error("not-uniform", f"expected the same {what} in all lanes, got {found}", site)
    return int(values[0])


@instruction("bar.sync", "barrier.sync", "barrier.cta.sync", "bar.cta.sync")
def bar_sync(d: Decode) -> Op:
    """All live lanes of the warp arrive together. `bar` means `barrier` with .aligned."""
    d.skip("aligned")
    d.done((1, 2))
    number = d.src(d.operands[0], _U32_TYPE)
    count = d.src(d.operands[1], _U32_TYPE) if len(d.operands) == 2 else None
    site = d.site

    def run(w: Warp, m: int) -> Blocking:
        threads = uniform(w, count, m, site, "thread count") if count is not None else None
        yield from w.agent.barrier.sync(uniform(w, number, m, site, "barrier"), threads, site=site)

    return d.blocking(run, aligned=True)


@instruction("bar.arrive", "barrier.arrive", "barrier.cta.arrive", "bar.cta.arrive")
def bar_arrive(d: Decode) -> Op:
    """Arrives without waiting; the instruction has to give the thread count."""
    d.skip("aligned")
    d.done(2)
    number, count = (d.src(o, _U32_TYPE) for o in d.operands)
    site = d.site

    def run(w: Warp, m: int) -> None:
        threads = uniform(w, count, m, site, "thread count")
        barrier = uniform(w, number, m, site, "barrier")
        w.agent.barrier.arrive(barrier, threads, site=site)

    return d.plain(run, aligned=True)


@instruction("bar.red", "barrier.red", "barrier.cta.red", "bar.cta.red")
def bar_red(d: Decode) -> Op:
    """Like bar.sync, and also counts the threads whose predicate is true, or combines the
    predicates of all arriving threads by and or or.
    """
    d.skip("aligned")
    mode = d.require("popc", "and", "or")
    d.require("u32" if mode == "popc" else "pred")
    d.done((3, 4))
    dst = d.dst(d.operands[0], _U32_TYPE) if mode == "popc" else d.pred_dst(d.operands[0])
    number = d.src(d.operands[1], _U32_TYPE)
    count = d.src(d.operands[2], _U32_TYPE) if len(d.operands) == 4 else None
    source, flip = d.pred(d.operands[-1])
    site = d.site

    def run(w: Warp, m: int) -> Blocking:
        if w.undef[source] & m:
            w.read_undefined(site, (source,), m)
        threads = uniform(w, count, m, site, "thread count") if count is not None else None
        barrier = uniform(w, number, m, site, "barrier")
        rounds, key = w.launch.reductions, (w.agent.cta.index, barrier)
        yes = (w.p[source] ^ flip) & m
        arrivals = rounds.setdefault(key, [])
        arrivals.append((yes.bit_count(), m.bit_count()))
        yield from w.agent.barrier.sync(barrier, threads, reduces=True, site=site)
        if rounds.get(key) is arrivals:
            del rounds[key]  # the first to continue opens the next round
        total, threads_seen = (sum(column) for column in zip(*arrivals, strict=True))
        if mode == "popc":
            w.v[U32][dst][LANE_INDICES[m]] = total
        else:
            holds = total == threads_seen if mode == "and" else total > 0
            w.p[dst] = w.p[dst] & ~m | (m if holds else 0)
        w.undef[dst] &= ~m

    return d.blocking(run, aligned=True)


@instruction("bar.warp.sync")
def bar_warp(d: Decode) -> Op:
    d.done(1)
    mask = d.src(d.operands[0], _U32_TYPE)
    return d.among(mask, synchronise_lanes)


_SCOPE = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "gl": "gpu", "sys": "sys"}


def _fence(d: Decode, kind: str) -> Op:
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.fence(kind, site=site)

    return d.plain(run)


def _fence_memory(
    d: Decode, scope: str, *, sc: bool = False, acquire: bool = True, release: bool = True
) -> Op:
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.agent.proceed_unless_polling(site)
        w.agent.strong.fence(scope, sc=sc, acquire=acquire, release=release)

    return d.plain(run)


@instruction("membar")
def membar(d: Decode) -> Op:
    scope = d.require(*_SCOPE)
    d.done(0)
    return _fence_memory(d, _SCOPE[scope], sc=True)  # on sm_70 and later a synonym for fence.sc


@instruction("fence")
def fence(d: Decode) -> Op:
    side = d.take("sc", "acq_rel", "acquire", "release")
    scope = _SCOPE[d.require(*_SCOPE)]
    d.done(0)
    return _fence_memory(
        d, scope, sc=side == "sc", acquire=side != "release", release=side != "acquire"
    )


@instruction("fence.mbarrier_init")
def fence_mbarrier_init(d: Decode) -> Op:
    d.require("release")
    d.require("cluster")
    d.done(0)
    return _fence(d, "mbarrier_init")


@instruction("fence.proxy.async")
def fence_proxy_async(d: Decode) -> Op:
    space = d.take("shared::cta", "shared::cluster", "global")
    d.done(0)
    return _fence(d, f"proxy.async.{space.partition(':')[0]}" if space else "proxy.async")


@instruction(
    "fence.proxy.async::generic",
    "fence.acquire.sync_restrict::shared::cluster",
    "fence.release.sync_restrict::shared::cta",
)
def fence_restricted(d: Decode) -> Op:
    """One-way fences that order only accesses to shared memory; PTX has exactly one spelling of
    each.

    The release form covers accesses to this CTA's shared memory, the acquire form accesses to the
    shared memory of the cluster. Both are executed as the full fence, which orders more.
    """
    proxy = d.name.startswith("fence.proxy")
    if proxy:
        word = d.require("acquire", "release")
        d.require(f"sync_restrict::shared::{'cta' if word == 'release' else 'cluster'}")
    d.require("cluster")
    d.done(0)
    return _fence(d, "proxy.async.shared" if proxy else "cluster")


@instruction("fence.proxy.alias", "membar.proxy.alias")
def fence_proxy_alias(d: Decode) -> Op:
    """fence.proxy.alias: has no effect, because no two addresses of the simulated machine are
    aliases.
    """
    return d.plain(no_effect)
