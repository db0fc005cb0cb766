# Takes all rights from the job folder.
#
# /// expect
# seen = { left = true }
# collect = ["result.txt"]
# files = ["result.txt"]
# at."user:userns".files = []
# at."user:limits".files = []
# ///
import os

from probe import report

with open("result.txt", "w") as file:
    file.write("42")
os.chmod(".", 0)
report(left=True)
