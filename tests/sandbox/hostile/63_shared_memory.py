# Holds 320 MiB of shared memory that belongs to no process.
#
# /// expect
# status = "memory"
# oom = true
# open = ["full-nocg", "user:userns"]
# not_run = ["weak"]
# ///
import ctypes

from probe import libc

libc.shmat.restype = ctypes.c_void_p
for _ in range(20):
    block = libc.shmget(0, ctypes.c_size_t(16 << 20), 0o1600)
    at = libc.shmat(block, None, 0)
    ctypes.memset(at, 1, 16 << 20)
    libc.shmdt(ctypes.c_void_p(at))
