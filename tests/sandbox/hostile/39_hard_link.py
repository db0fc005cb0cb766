# Makes hard links to its inputs and to a program of the host.
#
# /// expect
# seen = { input = 1, host = true }
# at.userns.seen.input = 0
# at."user:userns".seen.input = 0
# at."user:limits".seen.input = 0
# ///
import os

from probe import attempt, report

host = attempt(os.link, "/usr/bin/id", "id")
report(input=attempt(os.link, "main.py", "result"), host=host in (1, 18))
