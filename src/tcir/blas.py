"""The threads of numpy's BLAS."""


def one_thread() -> None:
    """Has products of this process take one core: as many processes share the cores as they should.

    It takes 2 ms, and 0.4 ms where the libraries are known; importing takes 4 ms.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
