"""Lockstep: the CTAs of a grid that do the same as the first one, executed together.

The first CTA, the *leader*, runs on the machine with every check. A recorder follows it and marks
the values that may differ in another CTA: %ctaid, and everything computed from it or read through
it. These *varying* instructions are the trace; the others, *uniform* ones, have the same result in
every CTA.

A group of followers replays the trace, one numpy call per instruction for all CTAs. The order in
which the leader's warps took turns is also legal for the followers: it follows from addresses in
shared and tensor memory, barriers and branches, and from a seed. A CTA for which one of these
differs *leaves* the group, and so does one that would do something that the machine reports; it
runs on the machine later, as the next leader. What the group writes to global memory is kept until
its end, and a ledger of all CTAs' accesses shows that none touches what another one writes.

Asynchronous operations take effect as they are issued. In the order of issue the leader behaves the
same; under a seed it makes no difference to a leader without a hazard.

Whatever is unknown here is left to the machine: an instruction without a rule, a leader with a
finding, a conflict in the ledger. So results, findings and counters are the machine's own; under a
seed, how often a wait is polled is the leader's.
"""
