"""wgmma: the tensor-core instructions of Hopper, which warpgroups execute (PTX ISA 9.7.15)."""
