# Kills everything that it may.
#
# /// expect
# seen = { child = 9 }
# not_run = ["user:limits"]
# ///
import os
import signal
import time

from probe import report

pid = os.fork()
if pid == 0:
    time.sleep(1000)
os.kill(-1, signal.SIGKILL)
report(child=os.waitpid(pid, 0)[1])
