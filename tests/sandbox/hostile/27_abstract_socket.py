# Connects to a socket of the host that has no file.
#
# /// expect
# seen = { errno = 111 }
# open = ["limits", "user:limits"]
# ///
import socket

from probe import attempt, hints, report

with socket.socket(socket.AF_UNIX) as unix:
    report(errno=attempt(unix.connect, "\0" + hints["abstract"]))
