"""Which findings are errors and which only warnings: what shipping compilers leave out."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from tcir.machine import Machine, TensorMap, TensorOperand

from .bench import at_column_0


def findings(
    bodies: list[Any], seed: int | None = None, ordering: str = "silicon"
) -> list[tuple[str, str]]:
    options = at_column_0(seed, ordering=ordering)
    machine = Machine(grid=(1, 1, 1), block=(64, 1, 1), dynamic_smem=1024, options=options)
    source = np.arange(64, dtype=np.float16)
    tensor = TensorMap.tiled(source, dtype="f16", dims=[64], strides_bytes=[], box=[64])
    decoded = TensorMap.decode(tensor.encode(machine.memory.bind(source)))
    machine.run(
        lambda cta: [
            cta.agent(f"warp {n}", warp=n, body=lambda agent, b=b: b(agent, decoded))
            for n, b in enumerate(bodies)
        ]
    )
    return [(f.severity, f.code) for f in machine.findings]


def storing(value: int) -> Any:
    def body(agent: Any, _: Any) -> Generator[Any, Any, None]:
        data = np.full((1, 4), value, np.uint8)
        agent.memory.store("shared", np.array([512]), data, site=f"store of {value}")
        yield from agent.pause()

    return body


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_two_warps_that_store_the_same(seed: int | None) -> None:
    for ordering in ("silicon", "isa"):  # PTX ISA 8.7.1 defines it: either value is the same one
        found = findings([storing(7), storing(7)], seed, ordering)
        assert found == [("warning", "same-value-race")]
    assert findings([storing(7), storing(8)], seed) == [("error", "race")]


def refilling(fence: bool, read_back: bool) -> Any:
    """A store, then a TMA load over it (or a TMA store of it), with or without the proxy fence."""

    def body(agent: Any, decoded: Any) -> Generator[Any, Any, None]:
        agent.mbarrier.init(1000, 1, site="init")
        agent.fence("mbarrier_init", site="fence")
        agent.memory.store("shared", np.array([0]), np.ones((1, 128), np.uint8), site="store")
        if fence:
            agent.fence("proxy.async", site="proxy fence")
        if read_back:
            agent.tma.store(0, TensorOperand(decoded, (0,)), site="TMA store")
            agent.bulk.commit(site="commit")
            yield from agent.bulk.wait(0, site="wait")
            return
        agent.mbarrier.arrive(1000, expect_tx=128, site="arrive")
        agent.tma.load(0, TensorOperand(decoded, (0,)), 1000, site="TMA load")
        yield from agent.mbarrier.wait(1000, 0, site="wait")

    return body


@pytest.mark.parametrize("read_back,severity", [(True, "error"), (False, "warning")])
def test_proxy_fence(read_back: bool, severity: str) -> None:
    assert findings([refilling(False, read_back)]) == [(severity, "missing-proxy-fence")]
    assert findings([refilling(False, read_back)], None, "isa") == [
        ("error", "missing-proxy-fence")
    ]
    for ordering in ("silicon", "isa"):
        assert findings([refilling(True, read_back)], None, ordering) == []
