"""Global and shared memory of the simulated machine, and the copies between them."""
