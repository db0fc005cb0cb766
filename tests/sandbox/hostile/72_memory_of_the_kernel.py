# Reads the kernel's memory and its messages.
#
# /// expect
# seen = { kcore = true, kmsg = 2, log = 1 }
# not_run = ["weak"]
# ///
import os

from probe import attempt, report, syscall

report(
    kcore=attempt(os.open, "/proc/kcore", os.O_RDONLY) in (2, 13),
    kmsg=attempt(os.open, "/dev/kmsg", os.O_RDONLY),
    log=syscall(103, 3, b"x" * 100, 100),
)
