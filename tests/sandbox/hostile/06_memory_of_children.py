# Three children take 150 MiB each, and the parent ends well.
#
# /// expect
# status = "memory"
# oom = true
# open = ["uncounted"]
# ///
import os
import time

children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        block = bytearray(150 << 20)
        time.sleep(0.5)
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
