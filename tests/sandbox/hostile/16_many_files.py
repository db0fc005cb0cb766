# Writes files of 1 MiB, each below the limit.
#
# /// expect
# seen = { mib = "31..32", errno = 28 }
# open = ["user:limits"]
# ///
from pathlib import Path

from probe import report, until_refused

names = iter(range(1000))
mib, errno = until_refused(lambda: Path(str(next(names))).write_bytes(b"x" * (1 << 20)), 40)
report(mib=mib, errno=errno)
