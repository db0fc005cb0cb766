# Connects to a port of the host.
#
# /// expect
# seen = { tcp = 111 }
# at.unshare.seen.tcp = 101
# open = ["limits", "user:limits"]
# ///
import socket

from probe import attempt, hints, report

report(tcp=attempt(socket.create_connection, ("127.0.0.1", hints["port"]), 5))
