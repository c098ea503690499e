"""Chooses the ops of a graph that become kernels.

Regions (groups of ops that become one kernel) are as large as possible. If a region is rejected,
the error names the op to leave out, or the place at which to cut the region.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_as_graphmodule

from tcir.errors import Error, InternalError
from tcir.kernel import Kernel
from tcir.progress import left
from tcir.session.apart import Compilers, compilers
from tcir.torch.exported import PLACE, Unit, is_getitem, name_of, torch_text
from tcir.torch.layouts import order_of
from tcir.validation.estimate import duration

VIEWS = (
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze",
    "expand", "slice", "select", "alias", "detach", "split", "split_with_sizes", "chunk", "unbind",
    "clone", "contiguous", "dropout", "movedim", "flatten", "unflatten", "narrow", "expand_as",
    "view_as", "reshape_as", "swapaxes", "mT",
)  # fmt: skip
"""Ops that compute nothing. They are part of a kernel, or left to PyTorch, where they are free."""
COPIES = ("clone", "contiguous")
"""Ops of `VIEWS` that copy a tensor, perhaps in another order."""
MADE = ("arange", "full", "zeros", "ones", "scalar_tensor", "eye", "lift_fresh_copy")
"""Ops without tensor operands; a kernel does not consist of these alone."""
NOTHING = "computes nothing"
PER_OP = 0.15
"""Seconds to compile one op of a network on one busy core, correct within a factor of about 3."""
ELEMENTS = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.int8,
    torch.uint8, torch.int16, torch.int32, torch.int64, torch.float8_e4m3fn, torch.float8_e5m2,
)  # fmt: skip
"""Element types that kernels support in memory."""


@dataclass(frozen=True)
class Lowered:
    """A region of the graph that became a kernel.

    mlir: the program that `pipeline` compiled
    cut:  the reason why a larger region was rejected although each of its ops compiles alone
    """

    nodes: tuple[torch.fx.Node, ...]
    kernel: Kernel
    mlir: str
    pipeline: str
    cut: str = ""


@dataclass
class Lowering:
    """Result of lowering a graph.

    regions:  the kernels
    left:     the ops that PyTorch runs, each with the full reason
    attempts: number of regions that were compiled
    kinds:    number of kinds of ops that were compiled alone
    seconds:  duration of the whole lowering
    """

    regions: list[Lowered] = field(default_factory=list)
    left: dict[torch.fx.Node, str] = field(default_factory=dict)
    attempts: int = 0
    kinds: int = 0
    seconds: float = 0.0


OWN: dict[torch._ops.OperatorBase, Callable[[torch.fx.Node, str], tuple[Kernel, str, str]]] = {}
"""tcir's ops that generate their own program: functions of the node and the target that return the
kernel, its program and its pipeline. Each such op is a region of its own and runs the kernel
itself."""
Tell = Callable[[str], None]


def lower(
    module: torch.fx.GraphModule,
    units: Sequence[Unit],
    pipeline: str,
    target: str,
    tell: Tell,
    frozen: Collection[str] = (),
) -> Lowering:
    """Compiles the ops of the graph that `pipeline` supports; several child processes compile at
    the same time.

    frozen: names of the arguments of the graph that are frozen weights
    """
    started = time.perf_counter()
    result = Lowering()
    work = _Work(module, pipeline, target, compilers(), tell, result, frozenset(frozen))
    work.own([unit for unit in units if unit[0].target in OWN])
    plain = [unit for unit in units if unit[0].target not in OWN]
    work.compile(plain)
    for unit in plain:
        if not any(unit[0] in region.nodes for region in result.regions):
            result.left.setdefault(unit[0], NOTHING)
    result.seconds = time.perf_counter() - started
    return result


@dataclass
class _Work:
    module: torch.fx.GraphModule
    pipeline: str
    target: str
    compilers: Compilers
    tell: Tell
    result: Lowering
    frozen: frozenset[str]
    kernels: dict[object, Future[tuple[str, Kernel]]] = field(default_factory=dict)
    answers: dict[tuple[object, ...], str] = field(default_factory=dict)
    """Why the pipeline rejects a kind of op; "" if it accepts it."""

    def own(self, units: Sequence[Unit]) -> None:
        for unit in units:
            try:
                kernel, mlir, pipeline = OWN[unit[0].target](unit[0], self.target)
            except Error as error:
                self.result.left[unit[0]] = str(error)
            else:
                self.result.regions.append(Lowered(unit, kernel, mlir, pipeline))

    def compile(self, units: Sequence[Unit]) -> None:
        """Compiles the largest regions.

        If a region is rejected, the op at the location of the error is compiled alone, or each
        kind of op if the error has no location. The regions of the accepted ops are compiled next;
        if the op at the location is accepted alone, the region is cut there.
        """
        named: dict[torch.fx.Node, str] = {unit[0]: _of_types(unit) for unit in units}
        self.result.left.update({node: reason for node, reason in named.items() if reason})
        hopeful = [unit for unit in units if not named[unit[0]]]
        with _pool(self.compilers) as pool:
            waiting = [(r, "", self._start(pool, r)) for r in _regions(self.module, hopeful)]
            clock = _Clock(len(hopeful), len(waiting))
            self.tell(clock.begin())
            while waiting:
                region, cut, answer = waiting.pop(0)
                started = time.perf_counter()
                try:
                    mlir, kernel = answer.result()
                except Error as error:
                    smaller, why = self._smaller(pool, region, error)
                    why = "\n".join(filter(None, (cut, why if why not in cut else "")))
                    waiting[:0] = [(each, why, self._start(pool, each)) for each in smaller]
                    continue
                nodes = tuple(node for unit in region for node in unit)
                self.result.regions.append(Lowered(nodes, kernel, mlir, self.pipeline, cut))
                launches, took = len(kernel.launches.launches), time.perf_counter() - started
                words = f"{len(region)} ops: {launches} launches, {took:.1f} s"
                self.tell(words + clock.after(len(region) if waiting else None))

    def _smaller(
        self, pool: ThreadPoolExecutor, region: Sequence[Unit], error: Error
    ) -> tuple[list[Sequence[Unit]], str]:
        """The regions to compile in place of one rejected with `error`, and the reason of the
        rejection if every op of the region is accepted alone."""
        reason, place = _reason(error), _place(error, region)
        refused = self._refused(pool, region, reason, place)
        self.result.left.update(refused)
        if refused:
            smaller = _regions(self.module, [u for u in region if u[0] not in refused])
            words = f"without {', '.join(sorted({name_of((node,)) for node in refused}))}"
        else:
            smaller = _cut(region, len(region) // 2 if place is None else place)
            words = "in halves" if place is None else f"cut at {name_of(region[place])}"
        self.tell(f"{len(region)} ops: {reason}; {words}: {len(smaller)} regions")
        return smaller, "" if refused else reason

    def _refused(
        self, pool: ThreadPoolExecutor, region: Sequence[Unit], reason: str, place: int | None
    ) -> dict[torch.fx.Node, str]:
        """The ops of a rejected region that the pipeline also rejects alone, with the reason.

        Compiles the op at `place` alone. If there is no place, compiles one op of each kind, all in
        one program, then halves of the programs that are rejected.
        """
        kinds: dict[tuple[object, ...], list[Unit]] = {}
        for unit in filter(_computes, region):
            kinds.setdefault(_kind(unit), []).append(unit)
        asked = kinds if place is None else {_kind(region[place])} & kinds.keys()
        unknown = [kind for kind in asked if kind not in self.answers]
        self.result.kinds += len(unknown)
        waiting: list[tuple[list[tuple[object, ...]], Future[str] | None]] = []
        if len(region) == 1:
            self.answers.update(dict.fromkeys(kinds, reason))
        elif unknown:
            waiting = [(each, None) for each in _split(unknown)]
        while waiting:
            some, answer = waiting.pop(0)
            if answer is None:
                text = self._text([node for kind in some for node in kinds[kind][0]], apart=True)
                waiting.append((some, pool.submit(self._takes, *text)))
            elif (said := answer.result()) and len(some) > 1:
                waiting[:0] = [(each, None) for each in _split(some)]
            else:
                self.answers.update(dict.fromkeys(some, said))
        return {
            unit[0]: self.answers[kind]
            for kind, some in kinds.items()
            if self.answers.get(kind)
            for unit in some
        }

    def _text(
        self, nodes: Sequence[torch.fx.Node], apart: bool = False
    ) -> tuple[str, str, tuple[int, ...]]:
        """The text of a region in the dialect torch, "", and the numbers of its frozen arguments;
        or "" and the reason why there is none.

        apart: whether each op is given arguments of its own instead of results of the others
        """
        try:
            if apart:
                return torch_text(_side_by_side(self.module, nodes)), "", ()
            inner, inputs, _ = fuse_as_graphmodule(self.module, list(nodes), "region")
            frozen = [n for n, each in enumerate(inputs) if each.name in self.frozen]
            return torch_text(inner, bool(frozen)), "", tuple(frozen)
        except Error as error:
            return "", str(error), ()

    def _takes(self, text: str, reason: str, _: tuple[int, ...]) -> str:
        if reason:
            return without_place(reason)
        try:
            self.compilers.takes(text, self.pipeline, self.target)
        except Error as error:
            return _reason(error)
        return ""

    def _start(
        self, pool: ThreadPoolExecutor, region: Sequence[Unit]
    ) -> Future[tuple[str, Kernel]]:
        key = self._text([node for unit in region for node in unit])
        if key not in self.kernels:
            self.result.attempts += 1
            self.kernels[key] = pool.submit(self._compiled, *key)
        return self.kernels[key]

    def _compiled(self, text: str, reason: str, frozen: tuple[int, ...]) -> tuple[str, Kernel]:
        if reason:
            raise Error(reason)
        return self.compilers.lower(text, self.pipeline, self.target, frozen)


@dataclass
class _Clock:
    """Estimates how long a compilation takes from the number of ops that are done."""

    ops: int
    regions: int
    done: int = 0
    started: float = field(default_factory=time.perf_counter)

    def begin(self) -> str:
        """Text with the number of ops and regions and with the estimated duration."""
        seconds = duration(PER_OP * self.ops)
        regions = f"{self.regions} region{'s' * (self.regions > 1)}"
        return f"{self.ops} ops in {regions}: {seconds} (estimated)"

    def after(self, ops: int | None) -> str:
        """Text with the time that is left once `ops` more ops are done; "" for None."""
        if ops is None:
            return ""
        self.done += ops
        share = min(1.0, self.done / self.ops)
        passed = time.perf_counter() - self.started
        return f"; {duration(left(share, passed, PER_OP * self.ops))} left"


@contextmanager
def _pool(compilers: Compilers) -> Iterator[ThreadPoolExecutor]:
    """Threads that wait for child processes; on an error, work that has not begun is cancelled."""
    pool = ThreadPoolExecutor(compilers.count)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


T = TypeVar("T")


def _split(some: list[T]) -> list[list[T]]:
    """Both halves of a list; a list of one element as it is."""
    middle = (len(some) + 1) // 2
    return [half for half in (some[:middle], some[middle:]) if half]


def _side_by_side(
    module: torch.fx.GraphModule, nodes: Sequence[torch.fx.Node]
) -> torch.fx.GraphModule:
    """A graph in which each op has arguments of its own; getitems belong to the op before them."""
    graph, results = torch.fx.Graph(), []
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in nodes:
        if not is_getitem(node):
            copies = {}
            for read in node.all_input_nodes:
                copies[read] = graph.placeholder(f"x{len(graph.nodes)}")
                copies[read].meta = dict(read.meta)
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if isinstance(node.meta.get("val"), torch.Tensor):
            results.append(copies[node])
    graph.output(tuple(results))
    return torch.fx.GraphModule(module, graph)


def _cut(region: Sequence[Unit], place: int) -> list[Sequence[Unit]]:
    """Cuts a region before the op at `place` and before equal ops of other layers; returns the
    parts that compute something.

    A region of one op has no parts. If the only such op is the first, the parts are that op and
    the rest.
    """
    like = _neighbourhood(region[place])
    begins = [at for at, unit in enumerate(region) if at and _neighbourhood(unit) == like]
    bounds = [0, *(begins or [1]), len(region)]
    parts = [region[first:last] for first, last in pairwise(bounds)] if len(region) > 1 else []
    return [part for part in parts if any(map(_computes, part))]


def _place(error: Error, region: Sequence[Unit]) -> int | None:
    """The op of a region at which an error occurred, if the error names one."""
    found = PLACE.search(str(error))
    nodes = [number for number, unit in enumerate(region) for _ in unit]
    return nodes[int(found[1]) - 1] if found and 0 < int(found[1]) <= len(nodes) else None


def _computes(unit: Unit) -> bool:
    return _transposes(unit) or name_of(unit) not in (*VIEWS, *MADE)


def _transposes(unit: Unit) -> bool:
    """Whether an op copies a tensor to memory in another order, as ``x.t().contiguous()`` does."""
    if name_of(unit) not in COPIES:
        return False
    copied = unit[0].meta.get("val")
    moved = order_of(unit[0].all_input_nodes[0]) is not None
    return moved and isinstance(copied, torch.Tensor) and copied.is_contiguous()


def without_place(text: str) -> str:
    """The text of an error without its locations in generated MLIR, which users never see."""
    return PLACE.sub("", re.sub(r"^<text>:\d+:\d+: (error: )?", "", text))


def _reason(error: Error) -> str:
    """The whole error, without locations in the generated text."""
    text = without_place(str(error)).strip()
    return f"internal error: {text}" if isinstance(error, InternalError) else text


def _kind(unit: Unit) -> tuple[object, ...]:
    """Key that decides whether the pipeline accepts an op: its name, its numbers, and the types
    and shapes of its operands."""
    node = unit[0]
    return (str(node.target), repr(torch.fx.map_arg((node.args, dict(node.kwargs)), _shape)))


def _neighbourhood(unit: Unit) -> tuple[object, ...]:
    """The kind of an op, its operands and its users."""
    read = [str(each.target) for each in unit[0].all_input_nodes if each.op == "call_function"]
    return _kind(unit), read, sorted(str(user.target) for node in unit for user in node.users)


def _shape(node: torch.fx.Node) -> str:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return f"{tuple(value.shape)} {value.dtype}"
    return repr(value)


def _of_types(unit: Unit) -> str:
    """Why the element types of an op exclude it from kernels; "" if they do not."""
    values = [node.meta.get("val") for node in (*unit[0].all_input_nodes, *unit)]
    for value in torch.utils._pytree.tree_leaves(values):
        if isinstance(value, torch.Tensor) and value.dtype not in ELEMENTS:
            return f"kernels have no memory of element type {value.dtype}"
    return ""


def _regions(module: torch.fx.GraphModule, units: Sequence[Unit]) -> list[Sequence[Unit]]:
    """The largest regions of these ops, each with an op that computes something."""
    taken = {node for unit in units for node in unit}

    class LoweredOps(OperatorSupportBase):
        def is_node_supported(
            self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node
        ) -> bool:
            return node in taken

    proposed = CapabilityBasedPartitioner(
        module, LoweredOps(), allows_single_node_partition=True
    ).propose_partitions()
    regions: list[Sequence[Unit]] = []
    for partition in proposed:
        region = [unit for unit in units if unit[0] in partition.nodes]
        if any(map(_computes, region)):
            regions.append(region)
    return regions
