# Leaves its cgroup or lifts its limits.
#
# /// expect
# seen = { folder = 2, refused = true }
# open = ["weak"]
# ///
import os

from probe import attempt, report, write

report(
    folder=attempt(os.listdir, "/sys/fs/cgroup"),
    refused=attempt(write, "/sys/fs/cgroup/memory/cgroup.procs") != 0,
)
