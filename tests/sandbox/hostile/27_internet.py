# Connects to the internet, to a cloud's metadata, and resolves a name.
#
# /// expect
# seen = { internet = 101, metadata = 101, name = -2 }
# not_run = ["limits", "user:limits"]
# at.full.seen.name = -3
# at.full-nocg.seen.name = -3
# at.userns.seen.name = -3
# at."user:userns".seen.name = -3
# at.unshare.seen.name = -3
# ///
import socket

from probe import attempt, report

report(
    internet=attempt(socket.create_connection, ("1.1.1.1", 443), 2),
    metadata=attempt(socket.create_connection, ("169.254.169.254", 80), 2),
    name=attempt(socket.getaddrinfo, "example.com", 443),
)
