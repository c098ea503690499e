"""Ranges of generic addresses that stand for the other state spaces (PTX ISA 5.1, cvta).

The numbers are those of the simulated machine; programs may only convert addresses, and must not
assume the numbers. Global addresses are their own generic addresses and are below these ranges.
"""

from __future__ import annotations

SHARED = 0x7F00 << 32
LOCAL = 0x7F01 << 32
PARAM = 0x7F02 << 32
WINDOWS = {"shared": SHARED, "local": LOCAL, "param": PARAM, "global": 0, "const": 0}
PRIVATE = 20
"""Lowest bit of the thread number, from 1 on, in the address of a local variable; it
distinguishes the threads' variables. The bits below are the offset in the thread's local memory."""
SPACES = {SHARED >> 32: "shared", LOCAL >> 32: "local", PARAM >> 32: "param"}
