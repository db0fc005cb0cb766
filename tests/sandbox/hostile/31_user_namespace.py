# Makes a user namespace, in which it would be root.
#
# /// expect
# seen = { unshare = 1, clone = 1, setns = 1 }
# open = ["weak"]
# ///
import os

from probe import report, syscall

handle = os.open("/proc/self/ns/uts", os.O_RDONLY)
report(
    setns=syscall(308, handle, 0),
    clone=syscall(56, 0x10000000 | 0x20000000 | 17, None, None, None, None),
    unshare=syscall(272, 0x10000000),
)
