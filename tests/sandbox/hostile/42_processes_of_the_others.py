# Holds 28 processes for a while beside other boxes.
#
# /// expect
# seen = { made = 28, errno = 0 }
# not_run = ["limits", "user:limits"]
# ///
import time

from probe import forks, report

made, errno = forks(28)
time.sleep(0.5)
report(made=made, errno=errno)
