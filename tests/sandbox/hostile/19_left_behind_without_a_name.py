# The same, with its environment cleared.
#
# /// expect
# seen = { left = true }
# not_run = ["user:limits"]
# ///
import os

from probe import report

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    os._exit(0)
report(left=True)
