# Starts programs the other way, without end.
#
# /// expect
# seen = { made = "28..46", errno = 11 }
# not_run = ["user:limits"]
# at.limits.seen.made = "0..31"
# ///
import os

from probe import report, until_refused

made, errno = until_refused(
    lambda: os.posix_spawn("/bin/sleep", ["sleep", "1000"], {"HOME": os.environ["HOME"]}), 200
)
report(made=made, errno=errno)
