# Leaves what is no plain file under the names of results.
#
# /// expect
# seen.left = true
# collect = ["fifo", "link", "host", "socket", "folder", "twice", "dir/x", "../main.py", "/etc/passwd", "good"]
# files = ["good"]
# ///
import os
import socket

from probe import hints, report

os.mkfifo("fifo")
os.symlink("/etc/passwd", "link")
os.symlink(hints["file"], "host")
socket.socket(socket.AF_UNIX).bind("socket")
os.mkdir("folder", 0)
open("one", "w").close()
os.link("one", "twice")
os.symlink("/", "dir")
open("good", "w").close()
report(left=True)
