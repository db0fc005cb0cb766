# Writes replies where a worker has its pipe.
#
# /// expect
# seen = { request = 9, reply = 9 }
# ///
import os

from probe import attempt, report

report(request=attempt(os.read, 3, 1), reply=attempt(os.write, 4, b'{"n": 1, "value": "1"}\n'))
