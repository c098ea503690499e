"""Lockstep at tile level: CTAs that ask the machine for the same as the first one did.

As in `tcir.interp.ptx.lockstep`, the first CTA, the *leader*, runs on the machine with every check.
Its *trace* is what its agents ask of the machine: which unit does what, with which operands, in
which order, and when an agent gave way to others. A *follower* executes the same program on its own
values, with agents that take the leader's turns and only move data: no clocks, no record of
accesses, no scheduler. What a follower asks has to be what the leader did; only coordinates in
global memory and data may differ. A CTA that asks for something else *leaves*, and runs on the
machine, as the next leader.

CTAs that stay make a *class*. Under a seed, some of each class run on the machine, and the others
store what they did in the order of issue (`tcir.interp.tile.lockstep.repeat`).

What a follower writes to global memory is kept until its end, when the ledger of all CTAs' accesses
shows that none touches what another one writes. A unit that is not known here, a leader with a
finding, a conflict in the ledger: the machine runs every CTA, so results, findings and counters are
its own.
"""
