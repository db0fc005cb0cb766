# Opens raw sockets.
#
# /// expect
# seen = { raw = 1, packet = 1 }
# ///
import socket

from probe import attempt, report

report(
    raw=attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1),
    packet=attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 3),
)
