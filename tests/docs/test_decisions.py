"""Holds what a decision promises and no other test looks at."""

import json
import os
import subprocess
import sys

import pytest

COUNT = """
import json, sys
import torch
from harness.backends.base import load
before = torch.get_num_threads()
threads = load(sys.argv[1]).describe()["threads"]
print(json.dumps([before, threads, torch.get_num_threads()]))
"""


@pytest.mark.parametrize(("model", "threads"), [("hf:tiny", 1), ("hf:tiny?threads=3", 3)])
def test_a_tiny_model_gets_one_thread(model, threads):
    done = subprocess.run(
        [sys.executable, "-P", "-c", COUNT, model], capture_output=True, text=True, check=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert json.loads(done.stdout) == [2, threads, threads]
