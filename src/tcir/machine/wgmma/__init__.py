"""wgmma: the tensor core of Hopper, fed by warpgroups (PTX ISA 9.7.15)."""
