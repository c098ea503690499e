"""Results of compilations and sweeps, stored on disk under a digest of everything on which they
depend.
"""

from tcir.cache.keys import digest, versions
from tcir.cache.store import NO_STORE, Store, user_store

__all__ = ["NO_STORE", "Store", "digest", "user_store", "versions"]
