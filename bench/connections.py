"""Many open requests: 2,000 attempts over 200 connections to a fake server in another process.

    .venv/bin/python -P bench/connections.py [--connections 200] [--n 2000] [--seconds 0.2] [--kind K]

The run is a process of its own, so that its peak memory is its own. Every attempt must be scored and
asked for once; the peak must stay under 200 MB; so many requests must have been open at once.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_MB = 200


def main() -> int:
    """Serve, run, compare; exit 1 when a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=0.2, help="what each answer takes")
    parser.add_argument("--kind", default="openai", choices=["openai", "anthropic", "gemini"])
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return client(options.client, options.kind, options.connections, options.n)
    server = subprocess.Popen(
        [sys.executable, "-P", ROOT / "tests/fixtures/fake_server.py", str(options.seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    done = subprocess.run(
        [sys.executable, "-P", __file__, "--client", url, "--kind", options.kind, "--connections",
         str(options.connections), "--n", str(options.n)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    served = json.loads(server.communicate("")[0].splitlines()[-1])
    if done.returncode:
        print(done.stderr)
        return 1
    ran = json.loads(done.stdout)
    ideal = options.n * options.seconds / options.connections
    print(f"{ran['scored']} of {options.n} scored in {ran['seconds']:.1f} s (ideal {ideal:.1f} s)")
    print(f"server saw {served['calls']} calls, {served['most_at_once']} at once")
    print(f"peak memory {ran['peak_mb']:.0f} MB, processor {ran['cpu_s']:.1f} s")
    lost = options.n - min(ran["scored"], ran["journaled_once"], served["items"])
    fine = (
        lost == 0
        and served["calls"] == options.n
        and served["most_at_once"] == min(options.connections, options.n)
        and ran["peak_mb"] <= MOST_MB
    )
    print("fine" if fine else f"NOT as promised ({lost} lost)")
    return 0 if fine else 1


def client(url: str, kind: str, connections: int, n: int) -> int:
    """Run n attempts and print what they took."""
    from harness.core import registry
    from harness.core.records import SampleRecord
    from harness.core.task import Task
    from harness.core.types import Generation, Sample
    from harness.runner.config import make_config
    from harness.runner.lifecycle import start
    from harness.store.journal import read_records
    from harness.store.layout import Store

    samples = [
        Sample(item_id=f"item-{k}", input=f"item-{k}: 2 + 2?", target=("4",)) for k in range(n)
    ]
    task = Task(
        name="own/open", version="1", samples=samples, prompt="{{ input }}",
        gold=lambda sample: sample.target[0], guess=lambda _sample, _rng: "0", scorer="exact",
        solver="generate", generation=Generation(max_tokens=32),
    )  # fmt: skip
    registry.task("own/open")(lambda _request: task)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store")
        path = "/v1" if kind == "openai" else ""
        model = f"{kind}:m1?base_url={url}{path}"
        config = make_config(task="own/open", model=model, max_connections=connections)
        began = time.monotonic()
        summary = start(config, store)
        seconds = time.monotonic() - began
        journal = store.journal(summary.run_id)
        times = Counter(r.item_id for r in read_records(journal) if isinstance(r, SampleRecord))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({
        "scored": summary.n_scored, "journaled_once": sum(c == 1 for c in times.values()),
        "seconds": seconds, "peak_mb": used.ru_maxrss / 1024,
        "cpu_s": used.ru_utime + used.ru_stime,
    }))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
