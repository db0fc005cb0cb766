# Reserves space without writing.
#
# /// expect
# seen = { one = 27, all = 28, mib = "20..32" }
# open = ["user:limits"]
# ///
import os

from probe import attempt, report, until_refused

one = os.open("one", os.O_WRONLY | os.O_CREAT)
names = iter(range(100))


def reserve():
    handle = os.open(str(next(names)), os.O_WRONLY | os.O_CREAT)
    os.posix_fallocate(handle, 0, 4 << 20)
    os.close(handle)


refused = attempt(os.posix_fallocate, one, 0, 64 << 20)
n, errno = until_refused(reserve, 12)
report(one=refused, all=errno, mib=4 * n)
