"""The ``tc`` dialect: ops for tensor memory, for tcgen05 instructions, and for the structure of
kernels."""
