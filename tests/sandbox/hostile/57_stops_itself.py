# Stops itself and never goes on.
#
# /// expect
# status = "timeout"
# reason = "on the clock"
# limits = { wall_s = 2 }
# ///
import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)
