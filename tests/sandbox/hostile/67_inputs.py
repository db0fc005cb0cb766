# Changes its inputs and writes beside the job folder.
#
# /// expect
# seen = { write = 13, mode = 1, outside = 30 }
# open = ["user:limits"]
# at.userns.seen.mode = 0
# at."user:userns".seen.mode = 0
# at.unshare.seen.outside = 13
# at.limits.seen.outside = 13
# ///
import os

from probe import attempt, report

report(
    write=attempt(os.open, "main.py", os.O_WRONLY),
    mode=attempt(os.chmod, "main.py", 0o777),
    outside=attempt(os.open, "../x", os.O_WRONLY | os.O_CREAT),
)
