"""The simulated machine: a model of a GPU with its memories, tensor memory, mbarriers, TMA and
tensor core; it reports hazards.

    machine = Machine(grid=(2, 1, 1), block=(64, 1, 1), dynamic_smem=4096)
    address = machine.memory.bind(array)
    machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=program)])

``program(agent)`` is a generator; it calls an agent's blocking methods with ``yield from``. An
address of shared memory is a byte offset in the CTA's window. An address of tensor memory has the
lane in bits 31..16 and the column in bits 15..0.

Asynchronous operations (TMA, cp, shift, mma, commit) take effect later than they are issued. By
default each takes effect as soon as it may, in issue order. With an ``order_seed`` in
`tcir.run_options.RunOptions`, the order of the effects is drawn from the seed, and so is the order
in which the agents take turns.

This package imports neither the compiler nor MLIR. Its rules are written from the PTX ISA.
"""

from __future__ import annotations

from tcir.machine.assumptions import REGISTRY, Assumption, Assumptions
from tcir.machine.counters import Counters
from tcir.machine.engine.agent import Agent
from tcir.machine.engine.cta import Cta
from tcir.machine.engine.machine import Machine
from tcir.machine.errors import Deadlock, MachineError, NotModelled
from tcir.machine.findings import Finding
from tcir.machine.tensor_core.instruction_descriptor import InstructionDescriptor
from tcir.machine.tensor_core.mma_step import MmaOptions
from tcir.machine.tensor_core.operands import ElementAddresses, SharedDesc, TmemAddr
from tcir.machine.tma.box import TensorOperand
from tcir.machine.tma.tensor_map import DecodedMap, TensorMap

__all__ = [
    "REGISTRY",
    "Agent",
    "Assumption",
    "Assumptions",
    "Counters",
    "Cta",
    "Deadlock",
    "DecodedMap",
    "ElementAddresses",
    "Finding",
    "InstructionDescriptor",
    "Machine",
    "MachineError",
    "MmaOptions",
    "NotModelled",
    "SharedDesc",
    "TensorMap",
    "TensorOperand",
    "TmemAddr",
]
