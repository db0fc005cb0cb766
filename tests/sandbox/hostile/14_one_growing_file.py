# Lets one file grow and ignores the signal that warns of the limit.
#
# /// expect
# seen = { mib = 16, errno = 27 }
# ///
import os
import signal

from probe import report, until_refused

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
handle = os.open("large", os.O_WRONLY | os.O_CREAT)
mib, errno = until_refused(lambda: os.write(handle, b"x" * (1 << 20)), 40)
report(mib=mib, errno=errno)
