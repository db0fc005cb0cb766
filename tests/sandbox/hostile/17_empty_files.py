# Makes empty files without end.
#
# /// expect
# seen = { made = "980..1000", errno = 28 }
# open = ["user:limits"]
# ///
from pathlib import Path

from probe import report, until_refused

names = iter(range(10000))
made, errno = until_refused(lambda: Path(str(next(names))).touch(), 2000)
report(made=made, errno=errno)
