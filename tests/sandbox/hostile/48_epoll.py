# Opens watchers, timers and event counters without end.
#
# /// expect
# seen = { epoll = 24, inotify = 24, timer = 24, event = 24, signal = 24 }
# ///
import ctypes
import os

from probe import libc, report

makers = {
    "epoll": lambda: libc.epoll_create1(0),
    "inotify": lambda: libc.inotify_init1(0),
    "timer": lambda: libc.timerfd_create(1, 0),
    "event": lambda: libc.eventfd(0, 0),
    "signal": lambda: libc.signalfd(-1, ctypes.create_string_buffer(128), 0),
}
found = {}
for name, make in makers.items():
    made = []
    while len(made) < 1000 and (handle := make()) >= 0:
        made.append(handle)
    found[name] = ctypes.get_errno()
    for handle in made:
        os.close(handle)
report(**found)
