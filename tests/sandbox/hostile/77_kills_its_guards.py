# Sends every signal to its whole process group.
#
# /// expect
# status = ["crash", "timeout", "denied", "error"]
# not_run = ["limits", "user:limits"]
# limits = { wall_s = 5 }
# ///
import os
import signal

os.killpg(0, signal.SIGKILL)
