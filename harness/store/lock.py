"""The lock that elects one ingester: no two processes ever hold the live database."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from harness.core.errors import StoreError
from harness.store.layout import Store


@contextmanager
def locked(store: Store, wait: bool = False) -> Iterator[bool]:
    """Hold the store's lock; the kernel lets go of it when the process dies.

    Parameters
    ----------
    store : Store
    wait : bool
        Wait for another holder; otherwise give False at once.

    Yields
    ------
    bool
        Whether the lock is held.
    """
    try:
        fd = os.open(store.lock_file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(
            f"cannot lock store {store.root}: {error.strerror}; choose another with --store DIR"
        ) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(fd)
