# Reads a file of the host through the first process's root and its own.
#
# /// expect
# seen = { through = 13, own = 2 }
# at.userns.seen.through = 2
# at."user:userns".seen.through = 2
# open = ["weak"]
# ///
from probe import attempt, read, report

report(
    through=attempt(read, "/proc/1/root/etc/passwd"),
    own=attempt(read, "/proc/self/root/etc/passwd"),
)
