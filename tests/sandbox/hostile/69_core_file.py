# Crashes so that the kernel writes its memory to a file.
#
# /// expect
# status = "crash"
# reason = "SIGABRT"
# collect = ["core"]
# ///
import os
import resource

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.abort()
