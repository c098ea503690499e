"""The ``tc`` dialect: tensor memory, tcgen05 instructions, and the structure of kernels."""
