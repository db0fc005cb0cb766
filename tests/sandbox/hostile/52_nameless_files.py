# Fills the job folder with files that have no name.
#
# /// expect
# seen = { mib = "24..32", errno = 28 }
# open = ["user:limits"]
# ///
import os

from probe import report, until_refused


def one():
    handle = os.open(".", os.O_TMPFILE | os.O_RDWR)
    for _ in range(4):
        if os.write(handle, b"x" * (1 << 20)) < 1 << 20:
            os.write(handle, b"x")


n, errno = until_refused(one, 12)
report(mib=4 * n, errno=errno)
