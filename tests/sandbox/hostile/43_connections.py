# Floods a server of its own with connections.
#
# /// expect
# seen = { most = "10..61" }
# at.unshare.seen.most = 0
# ///
import socket

from probe import report, until_refused

server = socket.create_server(("127.0.0.1", 0), backlog=100)
kept = []
made, errno = until_refused(
    lambda: kept.append(socket.create_connection(server.getsockname())), 1000
)
report(most=made)
