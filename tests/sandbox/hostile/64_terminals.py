# Opens terminals of its own without end and types into one.
#
# /// expect
# seen = { errno = 24, inject = true }
# ///
import fcntl
import os
import pty
import termios

from probe import attempt, report, until_refused

inject = attempt(fcntl.ioctl, pty.openpty()[1], termios.TIOCSTI, b"x")
report(errno=until_refused(os.openpty, 100)[1], inject=inject in (0, 1, 5))
