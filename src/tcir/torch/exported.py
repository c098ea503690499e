"""Converts modules to graphs of ATen ops whose weights are arguments, cuts graphs into parts, and
converts parts to MLIR.
"""

from __future__ import annotations

import operator
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import ParamSpec, TypeAlias, TypeVar

import torch
from torch._functorch.compile_utils import fx_graph_cse
from torch.export import ExportedProgram
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

from tcir._mlir import import_bindings
from tcir.errors import InputError
from tcir.torch import objects
from tcir.torch.aliases import KEPT
from tcir.torch.calls import Call
from tcir.torch.decompositions import OF_FROZEN, decompositions, either
from tcir.torch.subclasses import made_of, parts_of
from tcir.torch.sums import partial_sums

Table: TypeAlias = "Mapping[torch._ops.OperatorBase, Callable[..., object]]"
"""Decompositions by op; one that returns NotImplemented leaves the op as it is."""
DECOMPOSITIONS: dict[torch._ops.OperatorBase, Callable[..., object]] = {}
"""Decompositions of tcir's own ops into ATen ops; each file that defines an op adds its entry."""
BY_NAME: dict[str, Callable[..., object]] = {}
"""Decompositions of ops of libraries that may not be installed, by the ops' names."""


_TRACING = threading.RLock()
"""Lock of PyTorch's tracers, which keep their state in globals."""
R = TypeVar("R")
P = ParamSpec("P")


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator that lets only one thread at a time run any of the decorated functions."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with _TRACING:
            return function(*args, **kwargs)

    return alone


class _Functional(torch.nn.Module):
    """A module whose arguments are the tensors of a call, followed by its parameters and
    buffers."""

    def __init__(self, module: torch.nn.Module, call: Call, names: Sequence[str]) -> None:
        super().__init__()
        # no submodule: it would own the weights
        self.__dict__.update(inner=module, call=call, names=names)

    def forward(self, *values: torch.Tensor) -> object:
        count = len(values) - len(self.names)
        parts = dict(zip(self.names, values[count:], strict=True))
        weights = {name: made_of(name, like, parts) for name, like in _whole(self.inner).items()}
        args, kwargs = self.call.with_tensors(values[:count])
        result = torch.func.functional_call(self.inner, weights, args, kwargs)
        objects.register(result)
        return result


def functional(module: torch.nn.Module, call: Call) -> torch.nn.Module:
    """The module as a function of the tensors of a call and of its weights (`weights_of`)."""
    return _Functional(module, call, list(weights_of(module)))


def _whole(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def weights_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The plain tensors of parameters and buffers, by name. A tensor subclass that wraps other
    tensors is taken apart (`parts_of`).
    """
    return {
        part: tensor
        for name, whole in _whole(module).items()
        for part, tensor in parts_of(name, whole).items()
    }


@one_at_a_time
def exported(
    module: torch.nn.Module, call: Call, weights: Mapping[str, torch.Tensor]
) -> torch.fx.GraphModule:
    """Exports the module as a graph of ATen ops for the shapes of its inputs, which are the tensors
    of `call`, then `weights`. Raises InputError if `torch.export` fails or the module modifies its
    arguments or buffers.
    """
    given = (*call.tensors, *(value.detach() for value in weights.values()))
    try:
        program = torch.export.export(functional(module, call), given, strict=False)
        table = {**DECOMPOSITIONS, **_composites(program.graph)}
        program = _decomposed(program, table)  # and replaces what is done in place
    except Exception as error:
        raise InputError(
            "torch.compile: expected a module that torch.export accepts, got "
            f"{_first(error)}{_of_subclasses(module)}"
        ) from error
    if program.graph_signature.buffers_to_mutate or program.graph_signature.user_inputs_to_mutate:
        raise InputError(
            "torch.compile: the module must not modify its arguments or buffers: a kernel's inputs "
            "are read-only; call module.eval() first, or return the new values"
        )
    found = program.module(check_guards=False)  # `Compiled` checks its inputs
    assert isinstance(found, torch.fx.GraphModule)
    found.graph._tracer_cls = None  # as without its hooks, it can be pickled
    graph = torch.fx.GraphModule(found, found.graph)
    # PyTorch's code for nested arguments takes half a microsecond a tensor at each call.
    graph.meta[RESULTS] = graph.graph._codegen.pytree_info.out_spec
    graph.graph.set_codegen(torch.fx.graph.CodeGen())
    for node in list(graph.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            graph.graph.erase_node(node)  # of types, which are fixed
    graph.recompile()
    _check_products(graph)
    return graph


def _decomposed(program: ExportedProgram, table: Table) -> ExportedProgram:
    """Decomposes ops, without PyTorch's checks of the arguments' shapes: it generates these in time
    quadratic in the number of weights, and they are not part of the result."""
    program.module = partial(program.module, check_guards=False)
    return program.run_decompositions(dict(table))


def _of_subclasses(module: torch.nn.Module) -> str:
    """Note for an error that names the types of weights that are wrapper subclasses; "" if there
    are none."""
    kinds = {
        type(each).__name__
        for each in _whole(module).values()
        if is_traceable_wrapper_subclass(each)
    }
    if not kinds:
        return ""
    return (
        f"; it has weights of {', '.join(sorted(kinds))}: replace them by plain tensors, with "
        "their dequantize(), or their layers by tcir.torch.QuantizedLinear"
    )


def _composites(graph: torch.fx.Graph) -> Table:
    """Decompositions of the graph's ops that belong to other libraries: PyTorch's into ATen ops
    (torchao), and ours."""
    ops = {node.target for node in graph.nodes if isinstance(node.target, torch._ops.OpOverload)}
    others = [op for op in ops if op.namespace not in ("aten", "tcir")]
    known = torch.export.default_decompositions() if others else {}
    found = {op: known[op] for op in others if op in known}
    return found | {op: BY_NAME[op.name()] for op in others if op.name() in BY_NAME}


PRODUCTS = (
    "linear", "mm", "bmm", "matmul", "addmm", "baddbmm", "addbmm", "mv", "dot",
    "conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d",
)  # fmt: skip
"""ATen ops whose operands PyTorch requires to have one type; `torch.export` does not check this."""


def _check_products(graph: torch.fx.GraphModule) -> None:
    """Raises InputError for products of two element types, which eager PyTorch rejects."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and name_of((node,)) in PRODUCTS:
            kinds = [each.meta["val"].dtype for each in node.all_input_nodes]
            if len(set(kinds)) > 1:
                got = ", ".join(str(kind).removeprefix("torch.") for kind in kinds)
                raise InputError(
                    f"torch.compile: {name_of((node,))}: expected tensors of one type, which "
                    f"eager PyTorch requires as well, got {got}; convert the input, or the module: "
                    ".half(), .float()"
                )


RESULTS = "tcir_results"
"""Key in the metadata of a graph: the structure of its results, which it returns as a tuple."""


@one_at_a_time
def traced(module: torch.fx.GraphModule, call: Call) -> torch.fx.GraphModule:
    """Traces a graph of ATen ops again, such as one from AOTAutograd, for the shapes and numbers of
    `call`.
    """

    def function(*tensors: torch.Tensor) -> object:
        args, kwargs = call.with_tensors(tensors)
        return module(*args, **kwargs)

    with torch.no_grad():
        graph = make_fx(function, tracing_mode="fake")(*call.tensors)
    assert isinstance(graph, torch.fx.GraphModule)
    return graph


Unit = tuple[torch.fx.Node, ...]
"""An op followed by the getitems that unpack its results."""


def units(graph: torch.fx.Graph) -> list[Unit]:
    """The ops of the graph in order, except views that PyTorch always runs (`KEPT`)."""
    found: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for node in graph.nodes:
        if node.op != "call_function" or KEPT in node.meta:
            continue
        if is_getitem(node) and node.args[0] in found:
            found[node.args[0]].append(node)
        else:
            found[node] = [node]
    return [tuple(nodes) for nodes in found.values()]


def is_getitem(node: torch.fx.Node) -> bool:
    """Whether the node selects one of the results of an op."""
    return node.target is operator.getitem


def name_of(unit: Unit) -> str:
    """Name of the op, such as ``linear``."""
    name = str(unit[0].target)
    for space in ("aten.", "tcir.", "torch_attn."):
        name = name.removeprefix(space)
    return name.split(".")[0]


def on_device(graph: torch.fx.GraphModule, device: torch.device) -> None:
    """Lets the ops of a graph that create tensors (`arange`, constants) create them on a device."""
    changed = False
    for node in graph.graph.nodes:
        given = node.kwargs.get("device")
        if given is not None and torch.device(given) != device:
            node.update_kwarg("device", device)
            changed = True
    if changed:
        graph.recompile()


def examples(part: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Zero tensors with the shapes, strides and types of a part's arguments. Raises InputError if
    an argument is not a tensor or its shape is not static.
    """
    values = [node.meta["val"] for node in part.graph.nodes if node.op == "placeholder"]
    if not all(isinstance(value, torch.Tensor) for value in values):
        raise InputError("takes an argument that is not a tensor")
    if not all(isinstance(size, int) for value in values for size in value.shape):
        raise InputError("expected static shapes, got one that depends on elements of a tensor")
    return [
        torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).zero_()
        for value in values
    ]


def _is_narrow(part: torch.fx.GraphModule) -> bool:
    """Whether the floating-point arguments and results of a part are all narrower than f32."""
    nodes = [*part.graph.find_nodes(op="placeholder"), *part.graph.output_node().all_input_nodes]
    values = tree_leaves([node.meta.get("val") for node in nodes])
    kinds = {value.dtype for value in values if isinstance(value, torch.Tensor)}
    return all(kind.itemsize < 4 for kind in kinds if kind.is_floating_point)


PLACES = "aten"
"""File name in the locations of a part's text; its line n is the nth op of the part."""
PLACE = re.compile(rf'"?{PLACES}"?(?:", line |:)(\d+)(?::\d+: (?:error: )?)?')
"""Matches a location in `PLACES`, as errors of the importer, of passes and of Python write it."""


@one_at_a_time
def torch_text(part: torch.fx.GraphModule, frozen: bool = False) -> str:
    """The text of the part in torch-mlir's dialect `torch`, after the decompositions of tcir and of
    torch-mlir.

    frozen: whether some arguments are frozen weights; results that depend only on them are then
        kept between calls

    The ops that replace the nth op of the part have line n of the file `PLACES` as their location.
    """
    ops = [node for node in part.graph.nodes if node.op == "call_function"]
    for number, node in enumerate(ops, 1):
        # Where PyTorch keeps locations, through exporting and decomposing.
        node.meta["stack_trace"] = f'File "{PLACES}", line {number}, in op'
    # The examples are on the CPU, and the program is the same wherever its tensors are.
    on_device(part, torch.device("cpu"))
    given = examples(part)
    table = dict(import_bindings("extras.fx_decomp_util").get_decomposition_table())
    for op, ours in (decompositions() | (OF_FROZEN if frozen else {})).items():
        table[op] = either(ours, table[op]) if op in table else ours
    partial = torch.float32 if _is_narrow(part) else torch.float64
    try:
        with partial_sums(partial), torch.no_grad(), preserve_node_meta():
            made = _traced(_Decomposing(part, table).run, given, table)
            if any(map(_writes, made.graph.nodes)):  # in a decomposition
                made = _traced(torch.fx.Interpreter(made).run, given, {})
        made.graph.eliminate_dead_code()
        made.graph = fx_graph_cse(made.graph)
        return _imported(made.graph)
    except Exception as error:
        where = PLACE.search(str(error))
        place = f"{PLACES}:{where[1]}:0: " if where else ""
        raise InputError(f"{place}torch-mlir does not import it: {_first(error)}") from error


def _traced(
    run: Callable[..., object], given: Sequence[torch.Tensor], table: Table
) -> torch.fx.GraphModule:
    """The ATen ops of a function after the decompositions of `table`, none of whose ops are in
    place."""
    trace = make_fx(functionalize(run), dict(table), "fake", _allow_non_fake_inputs=True)
    made = trace(*given)
    assert isinstance(made, torch.fx.GraphModule)
    return made


def _writes(node: torch.fx.Node) -> bool:
    """Whether an op writes an argument."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


class _Decomposing(torch.fx.Interpreter):
    """Runs a graph with decompositions of ops that PyTorch would decompose itself, before any
    tracer sees them (``CompositeImplicitAutograd``), such as ``adaptive_avg_pool2d``."""

    def __init__(self, part: torch.fx.GraphModule, table: Table) -> None:
        super().__init__(part)
        self.table = table

    def call_function(
        self, target: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        if target in self.table and _is_composite(target):
            made = self.table[target](*args, **kwargs)
            if made is not NotImplemented:
                return made
        return super().call_function(target, args, kwargs)


def _is_composite(op: object) -> bool:
    has_kernel, key = torch._C._dispatch_has_kernel_for_dispatch_key, "CompositeImplicitAutograd"
    return isinstance(op, torch._ops.OpOverload) and bool(has_kernel(op.name(), key))


def _imported(graph: torch.fx.Graph) -> str:
    """The text of a module with a graph as ``func.func @main``."""
    context = import_bindings("ir").Context()
    import_bindings("dialects.torch").register_dialect(context)
    importer = import_bindings("extras.fx_importer").FxImporter(context=context)
    importer.import_stateless_graph(graph, func_name="main")
    return str(importer.module.operation.get_asm(enable_debug_info=True))


def _first(error: BaseException) -> str:
    """The first line of an error that is not blank; the error's class if there is none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
