# Writes to the data that it was given.
#
# /// expect
# seen = { new = 30, old = 30, remount = 1 }
# not_run = ["weak"]
# ///
from probe import attempt, report, syscall, write

report(
    new=attempt(write, "/data/new"),
    old=attempt(write, "/data/rows.csv"),
    remount=syscall(165, b"none", b"/data", b"none", 0x20 | 0x1000, None),
)
