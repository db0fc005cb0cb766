# Opens devices of the machine.
#
# /// expect
# seen = { opened = [] }
# not_run = ["weak"]
# ///
import os

from probe import attempt, report

names = ["mem", "kmem", "kmsg", "port", "fuse", "kvm", "sda", "vda", "loop-control", "net/tun"]
names += ["loop0", "uinput", "vhost-net", "nvidia0", "dri/card0", "snapshot", "rtc0"]
report(opened=[name for name in names if attempt(os.open, f"/dev/{name}", os.O_RDONLY) != 2])
