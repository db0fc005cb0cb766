# Leaves a child that keeps stdout open.
#
# /// expect
# seen = { left = true }
# ///
import os
import time

from probe import report

if os.fork() == 0:
    os.setsid()
    time.sleep(1000)
report(left=True)
