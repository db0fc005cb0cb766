# Uses the newer call for processes, whose arguments no filter can see.
#
# /// expect
# seen = { errno = 38 }
# open = ["weak"]
# ///
import ctypes

from probe import report, syscall

report(errno=syscall(435, ctypes.create_string_buffer(88), 8))
