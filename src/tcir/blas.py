"""The number of threads of numpy's BLAS."""


def one_thread() -> None:
    """Limits the BLAS of this process to one thread, because there is one process per processor
    core.

    The call takes 2 ms, or 0.4 ms if the BLAS libraries were found before; importing the package
    that it uses takes 4 ms.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
