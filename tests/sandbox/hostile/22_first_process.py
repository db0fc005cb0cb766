# Looks into the first process.
#
# /// expect
# seen = { environ = 13, maps = 13, root = 13, cwd = 13, fd = 13 }
# at.userns = { seen = { environ = 0, maps = 0, root = 0, cwd = 0, fd = 0 } }
# at."user:userns" = { seen = { environ = 0, maps = 0, root = 0, cwd = 0, fd = 0 } }
# ///
import os

from probe import attempt, read, report

report(
    environ=attempt(read, "/proc/1/environ"),
    maps=attempt(read, "/proc/1/maps"),
    root=attempt(os.listdir, "/proc/1/root"),
    cwd=attempt(os.readlink, "/proc/1/cwd"),
    fd=attempt(os.listdir, "/proc/1/fd"),
)
