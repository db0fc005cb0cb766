# Fills pipes and pairs of sockets without end.
#
# /// expect
# seen = { pipes = 24, pairs = 24 }
# ///
import fcntl
import os
import socket

from probe import attempt, report, until_refused

kept = []


def full_pipe():
    read, write = os.pipe()
    kept.extend([read, write])
    attempt(fcntl.fcntl, write, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.set_blocking(write, False)
    while attempt(os.write, write, b"x" * 65536) == 0:
        pass


def full_pair():
    pair = socket.socketpair()
    pairs.append(pair)
    pair[0].setblocking(False)
    while attempt(pair[0].send, b"x" * 65536) == 0:
        pass


pairs = []
_, pipes = until_refused(full_pipe, 100)
for handle in kept:
    os.close(handle)
report(pipes=pipes, pairs=until_refused(full_pair, 100)[1])
