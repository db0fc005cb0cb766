# Becomes root, gives files away, makes device nodes.
#
# /// expect
# seen = { setuid = 1, setgid = 1, setgroups = 1, chown = 1, mknod = 1, hostname = 1 }
# at.userns.seen = { setuid = 22, setgid = 22, chown = 22 }
# at."user:userns".seen = { setuid = 22, setgid = 22, chown = 22 }
# ///
import os
import socket
import stat

from probe import attempt, report

open("own", "w").close()
report(
    setuid=attempt(os.setuid, 0),
    setgid=attempt(os.setgid, 0),
    setgroups=attempt(os.setgroups, [0]),
    chown=attempt(os.chown, "own", 0, 0),
    mknod=attempt(os.mknod, "node", stat.S_IFBLK | 0o666, os.makedev(254, 0)),
    hostname=attempt(socket.sethostname, "x"),
)
