"""NVVM to LLVM IR to PTX to cubin to SASS."""
