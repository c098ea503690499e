"""Lockstep: executes together the CTAs of a grid that do the same as the first CTA.

The first CTA, the *leader*, runs on the simulated machine with every check. A recorder follows it
and marks the values that may differ in another CTA: %ctaid, and everything that is computed from it
or read at an address that depends on it. The instructions on these values are *varying*, and the
trace consists of them. All other instructions are *uniform*: they have the same result in every
CTA.

A group of other CTAs, the *followers*, replays the trace, with one numpy call per instruction for
all CTAs. The order in which the leader's warps took turns is also legal for the followers: it
depends only on addresses in shared and tensor memory, on barriers and branches, and on a seed. A
CTA for which one of these differs from the leader *leaves* the group. So does a CTA that would do
something that the machine reports. A CTA that has left runs on the machine later, as the next
leader. The writes of the group to global memory are kept until the group's end. Then a ledger of
the accesses of all CTAs shows that no CTA touches bytes that another CTA writes.

Asynchronous operations take effect as they are issued. If the run is in the order of issue, that is
how the leader behaves as well; if the run has a seed, it makes no difference to a leader without a
hazard.

Whatever lockstep cannot handle is left to the machine: an instruction without a rule, a leader with
a finding, a conflict in the ledger. So results, findings and counters are those of the machine.
Only the number of times that a wait is polled under a seed is taken from the leader.
"""
