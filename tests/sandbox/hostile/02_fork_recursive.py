# Every child forks on, and it never ends.
#
# /// expect
# status = "timeout"
# limits = { wall_s = 1.5, cpu_s = 1 }
# not_run = ["limits", "user:limits"]
# ///
import contextlib
import os

while True:
    with contextlib.suppress(OSError):
        os.fork()
