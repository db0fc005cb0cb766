# Names files with new lines, control characters and bytes that are no text.
#
# /// expect
# seen = { made = 6 }
# collect = ["a\nb", "\u001b[2J", "\u202egnp.exe", "-rf *", "missing", "result.txt"]
# files = ["a\nb", "\u001b[2J", "\u202egnp.exe", "-rf *", "result.txt"]
# ///
import os

from probe import report

names = [b"a\nb", b"\x1b[2J", "\u202egnp.exe".encode(), b"-rf *", b"\xff\xfe", b"result.txt"]
for name in names:
    os.close(os.open(name, os.O_CREAT))
report(made=len(names))
