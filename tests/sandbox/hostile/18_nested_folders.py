# Nests folders thousands deep.
#
# /// expect
# seen = { made = "980..1000", errno = 28 }
# open = ["user:limits"]
# ///
import os

from probe import report, until_refused


def deeper():
    os.mkdir("d")
    os.chdir("d")


made, errno = until_refused(deeper, 2000)
report(made=made, errno=errno)
