# Keeps 24 nameless files of 14 MiB in memory.
#
# /// expect
# status = "memory"
# oom = true
# open = ["uncounted"]
# ///
import os

for _ in range(24):
    handle = os.memfd_create("x")
    os.write(handle, b"x" * (14 << 20))
