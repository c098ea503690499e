"""Matrix products on `tcgen05.mma`."""
