"""Take the pictures of the site in docs/img/board-*.png: the demo's models, and BRIDGE's published table.

    HARNESS_DATA=.venv/data .venv/bin/python -P data/make/screenshots.py [STORE]

Needs the extras `board`, `hf` and `gguf`, playwright, Debian's chromium and `harness fetch smollm2`;
with pillow the files get a palette and are a third as large. Times and run names differ each time.
STORE is one that an earlier call filled; without it the runs take some minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from harness.cli.board import ADDRESS, command, environment

IMAGES = Path(__file__).resolve().parents[2] / "docs/img"
PORT = 8599
MODELS = ["gguf:smollm2", "hf:tiny", "mock:gold", "mock:random"] + [
    f"mock:noisy?accuracy=0.{tenths}" for tenths in (2, 3, 4, 5, 6, 7, 8)
]
MOST_BYTES = 150_000
# Page, dark theme, height of the window.
PICTURES = {
    "leaderboard": ("", False, 800),
    "leaderboard-dark": ("", True, 800),
    "task": ("task?task=gsm8k", False, 1120),
    "runs": ("runs", False, 800),
    "scale": ("scale", False, 1060),
    "horizon": ("horizon", False, 1080),
}


def fill(store: Path) -> None:
    """Run the demo's tasks, and fit the baselines so that there is a scale to show."""
    harness = [sys.executable, "-P", "-m", "harness.cli.main"]
    run = ["run", "--task", "gsm8k,aicrypto/mcq", "--store", str(store), "--limit", "40"]
    models = [part for model in MODELS for part in ("--model", model)]
    subprocess.run([*harness, *run, "--max-tokens", "100", *models], check=True)
    subprocess.run([*harness, "fit", "--baselines", "--store", str(store)], check=True)


def wait(address: str) -> None:
    """Wait until the site answers."""
    for _ in range(300):
        try:
            httpx.get(f"{address}/_stcore/health", timeout=5)
            return
        except httpx.TransportError:
            time.sleep(0.2)
    raise TimeoutError(address)


def take(browser: Any, address: str, folder: Path) -> None:
    """Take every picture."""
    for name, (page, dark, height) in PICTURES.items():
        context = browser.new_context(
            viewport={"width": 1200, "height": height}, color_scheme="dark" if dark else "light"
        )
        window = context.new_page()
        window.goto(f"{address}/{page}")
        window.get_by_text("Script time").wait_for()
        window.wait_for_function(
            """() => document.querySelector('[data-testid="stApp"]').dataset.testScriptState
                === 'notRunning' && !document.querySelector('[data-testid="stSkeleton"]')"""
        )
        path = folder / f"board-{name}.png"
        window.screenshot(path=path, animations="disabled")
        context.close()
        shrink(path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path} is larger than {MOST_BYTES} bytes")


def shrink(path: Path) -> None:
    """Give a picture a palette of 128 colours, where pillow is installed."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> None:
    """Fill a store, serve it, take the pictures."""
    from playwright.sync_api import sync_playwright

    if len(sys.argv) > 1:
        store = Path(sys.argv[1])
    else:
        store = Path(tempfile.mkdtemp()) / "results"
        fill(store)
    address = f"http://{ADDRESS}:{PORT}"
    server = subprocess.Popen(command(PORT, browser=False), env=environment(store))
    try:
        wait(address)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"),
                args=["--no-sandbox", "--disable-gpu"],
            )
            take(browser, address, IMAGES)
            browser.close()
    finally:
        server.terminate()
        server.wait(timeout=30)


if __name__ == "__main__":
    main()
