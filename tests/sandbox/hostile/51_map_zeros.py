# Maps 4 GiB of zeros and huge pages.
#
# /// expect
# seen = { zeros = 12, huge = 12, locked = true }
# ///
import mmap
import os

from probe import attempt, report, syscall

zeros = os.open("/dev/zero", os.O_RDWR)
block = mmap.mmap(-1, 1 << 20)
report(
    zeros=attempt(mmap.mmap, zeros, 4 << 30, mmap.MAP_PRIVATE),
    huge=attempt(mmap.mmap, -1, 1 << 31, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000),
    locked=syscall(151, 1) in (1, 12),
)
