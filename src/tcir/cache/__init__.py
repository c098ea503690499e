"""What compilations and sweeps made, kept on disk by a digest of all that it depends on."""

from tcir.cache.keys import digest, versions
from tcir.cache.store import NO_STORE, Store, user_store

__all__ = ["NO_STORE", "Store", "digest", "user_store", "versions"]
