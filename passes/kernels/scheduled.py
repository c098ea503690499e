"""The options that tiling passes share: scheduler, cluster and store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tcir._mlir import ir
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.ops.highlevel import out_layout
from tcir.errors import InputError
from tcir.passes.emit.builders import i64
from tcir.passes.emit.cluster import ClusterShape
from tcir.passes.emit.cta_pair import check_cta_group
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import CTAS_PER_SM
from tcir.passes.emit.limits import MMA_N, ceil_div, round_up
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Source
from tcir.passes.kernels import legal
from tcir.passes.kernels.cores.tcgen05 import Tcgen05
from tcir.passes.kernels.cores.wgmma import OfWarpgroups
from tcir.passes.kernels.product import Accumulated
from tcir.passes.kernels.stores.accumulator import Storing, accumulator_store
from tcir.passes.kernels.stores.epilogue_tile import AUTO, TileStores, parse
from tcir.passes.kernels.stores.staged_fragments import Staging
from tcir.passes.kernels.tile import tile
from tcir.passes.kernels.warps import Warps
from tcir.passmanager.pipeline import Pass
from tcir.target import DEFAULT_TARGET

CLC = "clc"
SCHEDULERS = ("static", CLC)
BY_TMA = "tma"
STORES = ("direct", BY_TMA)


def check_scheduler(name: str) -> None:
    """Raises InputError for an unknown value of the option `scheduler`."""
    if name not in SCHEDULERS:
        raise InputError(f"expected scheduler to be one of {', '.join(SCHEDULERS)}, got {name}")


@dataclass(frozen=True)
class Scheduled(Pass):
    """A tiling pass with the options of a scheduler, of clusters and of a store, which `TileGemm`
    describes. A subclass adds the pass's name and ``n_tile``."""

    n_tile: int = 0
    persistent: bool = False
    ctas: int = 0
    scheduler: str = "static"
    store: str = "direct"
    store_stages: int = 0
    epilogue_tile: str = AUTO
    epilogue_warps: int = 0
    cta_group: int = 1
    cluster: str = "1x1"

    def __post_init__(self) -> None:
        check_scheduler(self.scheduler)
        if self.store not in STORES:
            raise InputError(f"expected store to be one of {', '.join(STORES)}, got {self.store}")
        for name in ("store_stages", "ctas"):
            if (number := getattr(self, name)) < 0:
                raise InputError(
                    f"expected {name.replace('_', '-')} of at least 1, or 0 to choose, got "
                    f"{number}; leave it out"
                )
        parse(self.epilogue_tile)
        _ = self.warps
        check_cta_group(self.cta_group)
        cluster = ClusterShape.parse(self.cluster)
        legal.check(legal.options_of(self))
        if self.ctas % cluster.ctas:
            raise InputError(
                f"expected ctas to be a multiple of the {cluster.ctas} of cluster={cluster}, got "
                f"{self.ctas}: the CTAs of a cluster go through tiles together; take "
                f"ctas={round_up(self.ctas, cluster.ctas)}"
            )
        if self.ctas % self.cta_group:
            raise InputError(
                f"expected ctas to be a multiple of cta-group={self.cta_group}, got {self.ctas}: "
                f"the CTAs of a pair compute tiles together; take ctas={self.ctas + 1}"
            )

    @property
    def warps(self) -> Warps:
        """Number of warps of each role."""
        return Warps(epilogue=self.epilogue_warps)

    def cluster_of(self, op: ir.OpView) -> ClusterShape:
        """Numbers of CTAs of the cluster along the rows and the columns of the mma's tiles."""
        cluster = ClusterShape.parse(self.cluster)
        return cluster.transposed if out_layout(op) == "nm" else cluster

    def in_parts(self, op: ir.OpView, n_tile: int, cluster: ClusterShape, step: int) -> int:
        """Number of columns of a tile of B that can be divided into one part per CTA of the
        cluster, each a multiple of `step`: `n_tile`, rounded up if the option leaves the choice to
        the pass."""
        multiple = cluster.multiple(step)
        if n_tile % multiple == 0:
            return n_tile
        nearest = min(round_up(n_tile, multiple), MMA_N.values[-1])
        if self.n_tile == 0:
            return nearest
        raise match_failure(
            op,
            f"expected n-tile to be a multiple of {multiple} with cluster={cluster}, got "
            f"{n_tile}: {cluster.m} CTAs load a part of B's columns each, whole swizzle patterns "
            f"of {step}; take n-tile={nearest}",
        )

    def tile(
        self,
        source: Source,
        create: Callable[[list[ir.Value]], Accumulated],
        n_tile: int,
        tiles: OutputTiles,
        count: int = 1,
        storing: Callable[[ir.Value], Storing] | None = None,
    ) -> None:
        """Replaces the source function by a tcgen05 kernel with these options.

        create: makes the product from the kernel's arguments
        count: number of adjacent tiles of `n_tile` columns that a CTA computes at a time
        storing: makes, from the kernel's output, a store that is defined outside the package
        """
        results = self.results(source, n_tile)
        read = self.warps.assign(source, staged=bool(results.stages))
        stores = partial(accumulator_store, source, results, read, storing)
        tile(source, create, tiles, Tcgen05(n_tile, count), stores)

    def results(self, source: Source, n_tile: int, staged_rows: int = 0) -> TileStores:
        """How the results of tiles of `n_tile` columns are stored. staged_rows: the number of rows
        of a tile from which TMA stores; 0: any number"""
        stages = (self.store_stages or (2 if self.persistent else 1)) * (self.store == BY_TMA)
        return TileStores.of(source, self.epilogue_tile, n_tile, stages, staged_rows)

    def shared_out(self, tiles: OutputTiles, most: int, ctas: int) -> OutputTiles:
        """Distributes `tiles` over the CTAs of a persistent kernel: as many CTAs as the option
        states, or `ctas`. A kernel is persistent by option, or because the SMs have room for only
        `most` CTAs."""
        return self.distributed(tiles, ctas) if self.persistent or tiles.count > most else tiles

    def distributed(self, tiles: OutputTiles, ctas: int) -> OutputTiles:
        """Distributes `tiles` over the CTAs of a persistent kernel: as many CTAs as the option
        states, or `ctas`. With cluster launch control there is one CTA for each tile."""
        if self.scheduler == CLC:
            return tiles.launched_each()
        return tiles.shared_by(self.ctas or ctas)

    def staging(self, core: OfWarpgroups, tiles: OutputTiles, parts: int = 1) -> Staging | None:
        """The shared-memory tiles through which TMA stores the sums of a kernel of warpgroups,
        whose tiles consist of `parts` adjacent fragments; None if threads store the sums."""
        if self.store != BY_TMA:
            return None
        rows, columns, atom = core.tile.rows, core.tile.columns // parts, core.atom
        return Staging(rows, columns, atom, self.store_stages, tiles.ctas is not None)

    def output_tiles(self, source: Source, rows: int, n: int, batch: int | None) -> OutputTiles:
        """The output's tiles of 128 rows, out of `rows` rows, with `n` tiles along the columns, for
        each matrix of the batch."""
        tiles = OutputTiles(
            ceil_div(rows, TMEM_LANES),
            n,
            batch,
            cluster=ClusterShape(PAIR) if self.cta_group == PAIR else self.cluster_of(source.op),
        )
        if not self.persistent:
            return tiles
        source.function.attributes[CTAS_PER_SM] = i64(1)
        return self.distributed(tiles, DEFAULT_TARGET.sms)
