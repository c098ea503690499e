"""Measures a network: exports and lowers it, runs it on the simulated machine, and compares the
results with PyTorch and f64."""

from __future__ import annotations

import copy
import resource
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from tcir.target import DEFAULT_TARGET
from tcir.tools.dev.networks.network import Network, of_type
from tcir.torch.calls import Call
from tcir.torch.compiled import Compiled, GpuOptions
from tcir.torch.entry import table
from tcir.torch.exported import exported, name_of, units, weights_of
from tcir.torch.imports import compared
from tcir.torch.lowering import NOTHING, lower
from tcir.validation.against_f64 import Compared

PIPELINE = "layers"
FACTORS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "convolution": (0, 1)}
"""Numbers of the arguments that ATen's contractions multiply."""
CUT = -(1 << 13)
"""Mask of the bits of an f32 that tf32 keeps."""


@dataclass
class Measured:
    """The result for a network with one element type.

    ops:      number of ops of the network's graph
    kinds:    number of kinds of op that were compiled alone
    share:    fraction of the contraction FLOPs in kernels
    left:     ops left to PyTorch, by reason
    compared: comparison of each floating-point result with f64, the worst first
    """

    ops: int
    kinds: int
    attempts: int
    regions: int
    launches: int
    share: float
    compile_seconds: float
    left: dict[str, list[str]] = field(default_factory=dict)
    run_seconds: float = 0.0
    megabytes: int = 0
    compared: list[Compared] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        """Descriptions of the results that are wrong."""
        return [each.failure for each in self.compared if each.failure]


def measure(
    network: Network, kind: torch.dtype, tell: Callable[[str], None] = lambda line: None
) -> Measured:
    """Measures a network with one element type.

    tell: is called with a line of text for each region of the graph
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, arguments = network.drawn(kind)
        compiled, found = _compiled(module, arguments, tell)
        started = time.perf_counter()
        mine = _floating(compiled(**arguments))
        found.run_seconds = time.perf_counter() - started
        own, exact = _own(module, arguments, kind), _exact(module, arguments)
    pairs = zip(mine, own, exact, strict=True)
    found.compared = sorted((compared(*each) for each in pairs), key=lambda each: -each.ratio)
    found.megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return found


def _compiled(
    module: torch.nn.Module, arguments: dict[str, object], tell: Callable[[str], None]
) -> tuple[Compiled, Measured]:
    started = time.perf_counter()
    call, target = Call.of((), arguments), DEFAULT_TARGET.name
    graph = exported(module, call, weights_of(module))
    ops = units(graph.graph)
    counted = {unit[0].name: flops(unit[0]) for unit in ops}
    lowering = lower(graph, ops, PIPELINE, target, tell)
    lowered = sum(counted.get(node.name, 0) for r in lowering.regions for node in r.nodes)
    compiled = Compiled(graph, table(graph, lowering), call, module, target, GpuOptions())
    found = Measured(
        len(ops),
        lowering.kinds,
        lowering.attempts,
        len(lowering.regions),
        sum(len(kernel.launches.launches) for kernel in compiled.kernels),
        lowered / max(1, sum(counted.values())),
        time.perf_counter() - started,
    )
    for region in lowering.regions:
        if region.cut:
            found.left.setdefault(region.cut, []).append("a cut")
    for node, reason in lowering.left.items():
        if reason != NOTHING:
            found.left.setdefault(reason, []).append(name_of((node,)))
    return compiled, found


def flops(node: torch.fx.Node) -> int:
    """FLOPs of the contractions of an op, as PyTorch counts them."""
    args, kwargs = torch.fx.map_arg((node.args, dict(node.kwargs)), lambda each: each.meta["val"])
    fake = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    if not fake:
        return 0
    with fake[0].fake_mode, FlopCounterMode(display=False) as counter:
        node.target(*args, **kwargs)
    return int(counter.get_total_flops())


class Tf32(TorchDispatchMode):
    """A PyTorch dispatch mode that truncates f32 factors of contractions to tf32, as tensor cores
    do."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        given = list(args)
        for place in FACTORS.get(func.overloadpacket.__name__, ()):
            if given[place].dtype == torch.float32:
                cut = given[place].contiguous().view(torch.int32) & CUT
                given[place] = cut.view(torch.float32)
        return func(*given, **(kwargs or {}))


def _own(
    module: torch.nn.Module, arguments: dict[str, object], kind: torch.dtype
) -> Sequence[torch.Tensor]:
    """PyTorch's results in the network's own type; f32 products use tf32, as on a GPU."""
    with torch.no_grad():
        if kind != torch.float32:
            return _floating(module(**arguments))
        with sdpa_kernel(SDPBackend.MATH), _without_fused_layers(), Tf32():
            return _floating(module(**arguments))


@contextmanager
def _without_fused_layers() -> Iterator[None]:
    """Context in which `nn.TransformerEncoderLayer` runs as separate products, and not as one
    native op that truncates no factor."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def _exact(module: torch.nn.Module, arguments: dict[str, object]) -> Sequence[torch.Tensor]:
    wide = {name: of_type(each, torch.float64) for name, each in arguments.items()}
    with torch.no_grad():
        return _floating(copy.deepcopy(module).double()(**wide))


def _floating(results: object) -> list[torch.Tensor]:
    tensors = [each for each in tree_leaves(results) if isinstance(each, torch.Tensor)]
    return [each for each in tensors if each.is_floating_point()]
