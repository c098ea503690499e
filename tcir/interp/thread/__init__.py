"""Executes modules of scf/arith/cf/llvm/nvvm by spelling each op as PTX."""
