"""Matrix products on tensor cores: tcgen05 and wgmma."""
