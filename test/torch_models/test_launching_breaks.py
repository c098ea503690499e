"""Mistakes planted in prepared launches, frozen weights and graphs: a test of each fails."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

from edited import edit
from tiers import slow

from . import test_launching as tests
from .test_launching import Gpu, make, text  # noqa: F401  fixtures

LIST, PREPARED = "tcir.runtime.launch_list:LaunchList", "tcir.runtime.prepared:Prepared"
LAUNCHING, GRAPHS = "tcir.torch.launching", "tcir.torch.graphs"
SNAPSHOT = "tcir.torch.snapshot"
WEIGHTS, FROZEN = "tcir.torch.weights:Weights", "tcir.program.frozen:split"


@dataclass(frozen=True)
class Break:
    """A mistake: `old` at `place` (see `edited.edit`) becomes `new`, so that `test` fails."""

    what: str
    place: str
    old: str
    new: str
    test: str
    options: tuple[tuple[str, Any], ...] = ()
    quick: bool = False


def _new(how: str, graph: bool) -> tuple[tuple[str, Any], ...]:
    return (("graph", graph), ("how", how))


REPACKED = "a_new_weight_is_repacked"
BREAKS = [
    # addresses
    Break("addresses are those of the first call", f"{LIST}.__call__", "addresses != self._bound",
          "not self._bound", "new_addresses_are_written", quick=True),
    Break("pointers are not written again", f"{LIST}._bind", "self._words[word] = address",
          "self._words[word] = self._words[word] or address", "new_addresses_are_written"),
    Break("other addresses than the new ones are written", f"{LIST}._bind", "operator.ne",
          "operator.eq", "new_addresses_are_written"),
    Break("a weight's address is that of the preparation", f"{WEIGHTS}.__call__",
          "place.get(name) is not value", "False", "new_addresses_are_written"),
    # layouts and devices
    Break("layouts are not compared", f"{SNAPSHOT}:Guard.__call__",
          "bool(self._guards.check(*tensors))", "True", "another_layout_is_prepared_again",
          quick=True),
    Break("a copy is of the first call", f"{LAUNCHING}:Ready.__init__",
          "if n not in kept]", "if False]", "another_layout_is_prepared_again"),
    Break("layouts of weights are those of the first call", f"{LAUNCHING}:Ready.fits",
          "state is self.state or self._weights_fit([tensors[n] for n in self.weights])", "True",
          "a_part_takes_weights_of_other_strides", quick=True),
    Break("the state is not asked for layouts", f"{SNAPSHOT}:Snapshot.is_of",
          "self.fits(self.tensors)", "True", "a_weight_changes_its_strides"),
    Break("addresses of weights are those of the first state", f"{LAUNCHING}:Ready.__call__",
          "self.state is not state", "self.state is None", "new_addresses_are_written"),
    Break("a graph reads weights that are not frozen elsewhere", f"{SNAPSHOT}:Snapshot.__init__",
          "np.array(self._addresses, np.uint64).tobytes()", "b''",
          "other_addresses_have_other_graphs", (("freeze", False),)),
    Break("strides of a graph's weights are not compared", f"{GRAPHS}:_Captured.is_for",
          "snapshot.fits is self.weights_fit or self.weights_fit(snapshot.tensors)", "True",
          "weights_of_other_strides_have_another_graph"),
    Break("shapes of weights are not checked", f"{LAUNCHING}:Ready.__init__",
          "device_buffer(what, spec, _as_launched(given), stream)", "pass",
          "another_layout_is_prepared_again"),
    Break("strides of a graph's arguments are not compared", f"{GRAPHS}:_Captured.is_for",
          "self.fits(arguments)", "True", "another_layout_at_the_same_address"),
    # streams
    Break("streams share workspaces", f"{LAUNCHING}:KernelLauncher.__call__",
          "key = device, stream, emulate, ", "key = device, emulate, ",
          "each_stream_has_workspaces_of_its_own", quick=True),
    Break("streams share graphs", f"{GRAPHS}:_key", "device, handle, is_emulated()",
          "device, is_emulated()", "each_stream_has_graphs_of_its_own"),
    Break("every stream is kept", f"{LAUNCHING}:KernelLauncher.__call__",
          "len(kept) > MOST_STREAMS", "False", "few_streams_are_kept"),
    Break("every graph is kept", f"{GRAPHS}:_Stream.capture", "len(self.graphs) > MOST_GRAPHS",
          "False", "few_graphs_are_kept"),
    Break("the capture does not wait", f"{GRAPHS}:_Stream.capture",
          "self.side.wait_stream(current)", "pass", "each_stream_has_graphs_of_its_own"),
    Break("nothing waits for the capture", f"{GRAPHS}:_Stream.capture",
          "current.wait_stream(self.side)", "pass", "each_stream_has_graphs_of_its_own"),
    # frozen weights
    Break("versions are not compared", f"{SNAPSHOT}:Snapshot.is_of",
          "self._versions == _versions(self.tensors)", "True", REPACKED, _new("in place", False),
          quick=True),
    Break("versions are not compared, in a graph", f"{SNAPSHOT}:Snapshot.is_of",
          "self._versions == _versions(self.tensors)", "True", REPACKED, _new("in place", True)),
    Break("identities are not compared", f"{SNAPSHOT}:Snapshot.is_of",
          "weights is self._weights or all(map(operator.is_, weights, self._weights))", "True",
          REPACKED, _new("equal address", False)),
    Break("addresses of weights are not compared", f"{SNAPSHOT}:Snapshot.is_of",
          "torch._C._tensors_data_ptrs_at_indices_equal(", "(lambda *_: True)(", REPACKED,
          _new("data", False)),
    Break("frozen weights are repacked at each call", f"{PREPARED}.__call__",
          "self._state is not state", "True", "weights_are_repacked_once"),
    Break("frozen weights are repacked never again", f"{PREPARED}.__call__",
          "state is None or self._state is not state", "self._state is None", REPACKED,
          _new("in place", False)),
    Break("an interrupted repacking counts", f"{PREPARED}.__call__",
          "self._once(addresses)\n            self._state = state",
          "self._state = state\n            self._once(addresses)",
          "an_interrupt_between_launches"),
    Break("old weights are let go", f"{SNAPSHOT}:Snapshot.__init__",
          "= weights, frozen, object()", "= (), frozen, object()", "old_weights_keep_their_memory"),
    Break("the graph is not asked what weights contain", f"{GRAPHS}:_Captured.is_for",
          "self.state is snapshot.state", "True", REPACKED,
          _new("in place", True)),
    Break("a graph does not keep what it uses", f"{GRAPHS}:_Stream.capture",
          "for ready in each.values()]", "for ready in ()]", "a_graph_keeps_what_it_uses"),
    Break("what depends on arguments is kept, too", FROZEN, "used - new <= fixed and new", "new",
          "new_addresses_are_written_and_frozen"),
    # graphs
    Break("results are the graph's own", f"{GRAPHS}:_copied", "result.clone()", "result",
          "calls_replay_a_graph", quick=True),
    Break("results of a replay before the check count", "tcir.torch.compiled:Compiled._run",
          "early is not None and snapshot is last", "early is not None", REPACKED,
          _new("in place", True), quick=True),
    Break("graphs are found by stream alone", f"{GRAPHS}:_addresses",
          "*[each.data_ptr() for each in arguments], ", "", "other_addresses_have_other_graphs",
          (("freeze", True),)),
    Break("results that share memory are copied", f"{GRAPHS}:_check_aliases", "memory in taken",
          "False", "results_that_share_memory_are_refused"),
    Break("a failed capture goes on", f"{GRAPHS}:_capture",
          "with contextlib.suppress(Exception):\n                graph.capture_end()", "pass",
          "a_failed_capture_leaves_nothing_behind", (("error", KeyboardInterrupt()),)),
    Break("a failed capture is kept", f"{GRAPHS}:Graphs.__call__", "self._streams.pop(key, None)",
          "pass", "a_failed_capture_leaves_nothing_behind", (("error", KeyboardInterrupt()),)),
    Break("collections stay off", f"{GRAPHS}:_no_collection", "if enabled", "if False",
          "a_failed_capture_leaves_nothing_behind", (("error", KeyboardInterrupt()),)),
    Break("a graph in a graph", f"{GRAPHS}:Graphs.__call__", "if capturing:", "if False:",
          "in_a_graph_of_the_caller", (("graph", True),)),
    Break("weights are frozen in the caller's graph", f"{LAUNCHING}:KernelLauncher.__call__",
          "capturing and store is None", "False", "in_a_graph_of_the_caller", (("graph", False),)),
    # the rest
    Break("contexts pile up", f"{LIST}.__init__", '"cuCtxPopCurrent"', '"cuCtxPushCurrent"',
          "a_failed_launch_leaves_nothing_behind", (("graph", False),)),
    Break("a graph keeps an address that moved", f"{LIST}._bind",
          "self._sequence, self._graphs_wait = self._plain, self.replay",
          "self._graphs_wait = self.replay",
          "launches_whose_addresses_stay_are_a_graph", (("freeze", False),)),
    Break("captured launches are in another graph", f"{LAUNCHING}:KernelLauncher.__call__",
          "store is None)", "True)", "captured_launches_are_in_no_other_graph"),
    Break("rejected launches are ignored", f"{LIST}._put", "if not status:", "if True:",
          "a_failed_launch_leaves_nothing_behind", (("graph", False),), quick=True),
    Break("nothing is freed", "tcir.torch.compiled:Compiled.clear", "module.launcher.clear()",
          "pass", "what_is_kept_is_freed"),
    Break("names of weights are not compared", f"{WEIGHTS}.__call__",
          "tuple(found) != self.names", "False", "weights_are_found_again"),
    Break("weights without versions are frozen", f"{SNAPSHOT}:_versions",
          "[each._version for each in weights]", "[0 for each in weights]",
          "weights_without_versions_are_not_frozen"),
]  # fmt: skip


@pytest.mark.parametrize(
    "planted",
    [each if each.quick else slow(each) for each in BREAKS],
    ids=[each.what for each in BREAKS],
)
def test_a_mistake_is_found(
    planted: Break,
    make: Callable[..., Gpu],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test = getattr(tests, f"test_{planted.test}")
    given: dict[str, Any] = {"make": make, "monkeypatch": monkeypatch, **dict(planted.options)}
    wanted = test.__code__.co_varnames[: test.__code__.co_argcount]
    with monkeypatch.context() as patch:
        edit(patch, planted.place, planted.old, planted.new)
        try:
            test(**{name: given[name] for name in wanted})
        except (Exception, KeyboardInterrupt, pytest.fail.Exception):
            return
    pytest.fail(f"{planted.what}: {planted.test} held")
