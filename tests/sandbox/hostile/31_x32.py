# Uses the numbers of another way into the kernel.
#
# /// expect
# seen = { getpid = 38, unshare = 38 }
# ///
from probe import report, syscall

report(getpid=syscall(0x40000000 + 39), unshare=syscall(0x40000000 + 272, 0x10000000))
