"""Lockstep at tile level: CTAs that issue the same operations as the first one.

As in `tcir.interp.ptx.lockstep`, the first CTA, the *leader*, runs on the machine with every check.
Its *trace* lists the operations of its agents: the units, the operands, their order, and where an
agent yielded to others. A *follower* executes the same program on its own values, with agents that
take the leader's turns and only move data: no clocks, no record of accesses, no scheduler. Its
operations must be the leader's; only coordinates in global memory and data may differ. A CTA that
issues another operation *leaves*, and runs on the machine, as the next leader.

CTAs that stay form a *class*. Under a seed, some of each class run on the machine, and the others
store what they stored in issue order (`tcir.interp.tile.lockstep.repeat`).

A follower's writes to global memory are buffered until its end, when the ledger of all CTAs'
accesses shows that none touches bytes that another one writes. For an unknown unit, a leader with a
finding, or a conflict in the ledger, the machine runs every CTA, so that results, findings and
counters come from the machine.
"""
