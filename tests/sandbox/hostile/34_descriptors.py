# Opens descriptors without end.
#
# /// expect
# seen = { made = "58..61", errno = 24 }
# ///
import os

from probe import report, until_refused

made, errno = until_refused(lambda: os.open("/dev/null", os.O_RDONLY), 1000)
report(made=made, errno=errno)
