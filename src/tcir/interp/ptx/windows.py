"""Generic addresses: where the other state spaces lie in them (PTX ISA 5.1, cvta).

The numbers are this machine's own; programs may only convert, never assume them. Global addresses
are their own generic addresses and stay below these windows.
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
