# Leaves ended children unburied, without end.
#
# /// expect
# seen = { made = "28..46", errno = 11 }
# not_run = ["user:limits"]
# at.limits.seen.made = "0..31"
# ///
import os

from probe import report, until_refused


def one():
    if os.fork() == 0:
        os._exit(0)


made, errno = until_refused(one, 200)
report(made=made, errno=errno)
