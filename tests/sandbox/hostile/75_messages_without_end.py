# Fills a queue of signals to itself.
#
# /// expect
# seen = { stopped = true }
# not_run = ["user:limits"]
# ///
import ctypes
import os
import signal

from probe import report, syscall

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
info = ctypes.create_string_buffer(128)
info[8:12] = (-1 & 0xFFFFFFFF).to_bytes(4, "little")
sent = 0
while sent < 500_000 and syscall(129, os.getpid(), int(signal.SIGRTMIN), info) == 0:
    sent += 1
report(stopped=sent < 500_000)
