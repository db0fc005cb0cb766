# Kills the first process and its parent.
#
# /// expect
# seen = { first = 1, parent = 1 }
# not_run = ["user:limits"]
# at.userns.seen = { first = 0, parent = 0 }
# at."user:userns".seen = { first = 0, parent = 0 }
# ///
import os
import signal

from probe import attempt, report

report(
    first=attempt(os.kill, 1, signal.SIGKILL), parent=attempt(os.kill, os.getppid(), signal.SIGKILL)
)
