# Reads its input, opens the terminal and types into it.
#
# /// expect
# seen = { read = 0, terminal = 6, inject = 25 }
# ///
import fcntl
import os
import termios

from probe import attempt, report

report(
    read=len(os.read(0, 100)),
    terminal=attempt(os.open, "/dev/tty", os.O_RDWR),
    inject=attempt(fcntl.ioctl, 0, termios.TIOCSTI, b"x"),
)
