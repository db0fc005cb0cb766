# Leaves a process that has left the session and closed everything.
#
# /// expect
# seen = { left = true }
# ///
import os
import time

from probe import report

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        time.sleep(1000)
    os._exit(0)
report(left=True)
