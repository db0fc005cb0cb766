# Takes back that it dies with its parent, and stays.
#
# /// expect
# status = "timeout"
# limits = { wall_s = 2 }
# ///
import os
import time

from probe import attempt, libc

libc.prctl(1, 0, 0, 0, 0)
os.fork()
if os.getpid() != os.getsid(0):
    attempt(os.setsid)
time.sleep(1000)
