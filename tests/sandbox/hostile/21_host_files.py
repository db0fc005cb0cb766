# Reads files of the host: passwords, home folders, a planted one.
#
# /// expect
# seen = { errnos = [2] }
# open = ["weak"]
# ///
from probe import attempt, hints, read, report

paths = ["/etc/passwd", "/etc/shadow", "/root/.bashrc", "/var/lib/dpkg/status", "/sys/kernel/mm"]
paths += ["/run/lock", "/home", "/srv", "/opt", "/mnt", hints["file"]]
report(errnos=sorted({attempt(read, path) for path in paths}))
attempt(lambda: print(read(hints["file"])))
