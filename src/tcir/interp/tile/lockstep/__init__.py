"""Lockstep at tile level: executes together CTAs that issue the same operations as the first CTA.

As in `tcir.interp.ptx.lockstep`, the first CTA, the *leader*, runs on the simulated machine with
every check. Its *trace* lists the operations that its agents issue to the machine's units: the
units, the operands, the order of the operations, and where an agent yielded to others. A *follower*
is another CTA, which executes the same program on its own values. Its agents take turns as the
leader's did and only move data: they keep no clocks and no record of accesses, and need no
scheduler. Its operations must be those of the leader; only coordinates in global memory and data
may differ. A CTA that issues another operation *leaves*, and runs on the machine as the next
leader.

A leader and its followers form a *class*. If the run has a seed, some CTAs of each class run on the
machine, and the others store what they stored in issue order (`tcir.interp.tile.lockstep.repeat`).

A follower's writes to global memory are buffered until its end. Then the ledger of the accesses of
all CTAs shows whether a CTA touches bytes that another CTA writes. If a unit is unknown, a leader
has a finding, or the ledger has a conflict, the machine runs every CTA. So results, findings and
counters are those of the machine.
"""
