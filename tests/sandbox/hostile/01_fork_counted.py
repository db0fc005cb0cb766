# Forks and counts how far it gets.
#
# /// expect
# seen = { made = 31, errno = 11 }
# not_run = ["user:limits"]
# at.userns.seen.made = "30..46"
# at.limits.seen.made = "0..31"
# at."user:userns".seen.made = 30
# ///
from probe import forks, report

made, errno = forks(200)
report(made=made, errno=errno)
