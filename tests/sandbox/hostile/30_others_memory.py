# Traces the first process, reads its memory, takes its descriptors.
#
# /// expect
# seen = { ptrace = 1, readv = 1, writev = 1, getfd = 1 }
# not_run = ["user:limits"]
# ///
import ctypes

from probe import report, syscall

local = ctypes.create_string_buffer(16)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(local), 16)
pidfd = syscall(434, 1, 0)
report(
    ptrace=syscall(101, 16, 1, 0, 0),
    readv=syscall(310, 1, vector, 1, vector, 1, 0),
    writev=syscall(311, 1, vector, 1, vector, 1, 0),
    getfd=syscall(438, 3, 0, 0),
)
