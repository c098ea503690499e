"""Global and shared memory, and the copies between them."""
