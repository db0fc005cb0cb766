# Is stuck inside a library call.
#
# /// expect
# status = "timeout"
# reason = "1 CPU seconds"
# limits = { cpu_s = 1 }
# ///
import re

re.match("(a+)+$", "a" * 40 + "b")
