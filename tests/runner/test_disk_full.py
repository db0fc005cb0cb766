"""A disk that fills up at any point of a run: one line, nothing lost, `resume` ends it.

The limit on the size of a file stands in for the full disk: the kernel refuses the write in the same
place and way, and no special rights are needed.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from harness.store.care import verify
from harness.store.layout import Store

CLI = [sys.executable, "-P", "-m", "harness.cli.main"]
RUN = ["run", "--task", "gsm8k", "--model", "mock:gold", "--epochs", "6", "--store"]


# In order: the first record, the middle of the journal, the database's birth, its data.
@pytest.mark.parametrize("limit", [6_000, 150_000, 400_000, 600_000, 1_500_000])
def test_what_is_done_is_kept_and_resume_ends_the_run(tmp_path, limit):
    def no_larger_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    store = tmp_path / "store"
    broken = subprocess.run(
        [*CLI, *RUN, str(store)], preexec_fn=no_larger_files, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert broken.returncode == 1, broken.stderr
    assert len(broken.stderr.strip().splitlines()) == 1
    assert broken.stderr.startswith("harness: cannot write")
    (run_id,) = [path.name for path in (store / "runs").iterdir()]
    verb = ["resume", run_id, "--store"] if limit > 10_000 else RUN
    mended = subprocess.run([*CLI, *verb, str(store)], capture_output=True, text=True, check=False)
    assert mended.returncode == 0, mended.stderr
    assert "360 of 360" in mended.stdout
    assert verify(Store(store)) == []
