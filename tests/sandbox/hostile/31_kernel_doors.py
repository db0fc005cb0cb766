# Asks for BPF, io_uring, performance events, page-fault handling.
#
# /// expect
# seen = { bpf = 1, uring = 1, perf = 1, userfault = 1 }
# open = ["weak"]
# ///
import ctypes

from probe import report, syscall

zeros = ctypes.create_string_buffer(128)
zeros[4] = b"\x80"
report(
    bpf=syscall(321, 0, zeros, 128),
    uring=syscall(425, 4, ctypes.create_string_buffer(128)),
    perf=syscall(298, zeros, 0, -1, -1, 0),
    userfault=syscall(323, 1),
)
