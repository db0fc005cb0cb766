# Writes where only the host may.
#
# /// expect
# seen = { errnos = [30, 30, 30, 30, 30], dev = 13 }
# at.weak.seen.errnos = [13, 13, 13, 13, 13]
# at.userns.seen.dev = 30
# at."user:userns".seen.dev = 30
# ///
from probe import attempt, report, write

folders = ["", "/usr", "/etc", "/lib", "/bin"]
report(errnos=[attempt(write, f"{f}/hostile-trial") for f in folders], dev=attempt(write, "/dev/x"))
