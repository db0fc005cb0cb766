"""The site in a real browser: one Chromium and one server a store for the whole session.

Pictures of every page are kept in tests/artefacts/, for people to look at.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from harness.cli.board import _free_port, command, environment
from harness.core.records import encoder
from harness.store import Store, sync
from leaderboard.app_pages import PAGES

PICTURES = Path(__file__).resolve().parents[2] / "artefacts"
DESKTOP = {"width": 1280, "height": 800}
SECONDS = 30_000
"""Milliseconds that a page may take on a busy machine; a quiet one needs one of these seconds."""

# On a deep link Streamlit first looks for its own files below the page's name.
HARMLESS = re.compile(r"/\w+/_stcore/(health|host-config)$")
STATUSES = ("scored", "error", "timeout", "truncated", "refused", "unscored", "unavailable")
# Whatever of this is taken for markup, a script or an address draws something or asks for something.
EVIL = """</code></pre><script>window.taken = 1</script><img src=x onerror="window.taken = 2">
<b class="taken">bold</b> **bold** [a](https://elsewhere.example/a) ![a](https://elsewhere.example/a.png)
$\\frac{1}{2}$ :material/home: :red[a] `a`
# a
"""
EVIL_ITEM = "<img src=x onerror='window.taken = 3'>**a**[a](//elsewhere.example) :red[a] $x^2$"
LONG = "hf:some-organisation/a-model-with-a-rather-long-name-70b-instruct"


class Visit:
    """One visitor: a window, and what the page asked for and complained of.

    Attributes
    ----------
    page : playwright.sync_api.Page
    look : str
        ``light`` or ``dark``.
    complaints : list of str
        Errors on the console and in scripts, but for the known harmless ones.
    addresses : set of str
        Every address asked for, sockets too.
    """

    def __init__(self, contexts, url: str, look: str = "light") -> None:
        self.url = url
        self.look = look
        self.complaints: list[str] = []
        self.addresses: set[str] = set()
        self.page = contexts[look].new_page()
        self.page.set_default_timeout(SECONDS)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.addresses.add(request.url))
        self.page.on("websocket", lambda socket: self.addresses.add(socket.url))

    def _console(self, message) -> None:
        if message.type == "error" and not HARMLESS.search(message.location.get("url", "")):
            self.complaints.append(f"{message.text} {message.location}")

    def open(self, name: str = "", **values: str) -> None:
        """Open a page as an address does, and wait for it whole."""
        query = f"?{urlencode(values)}" if values else ""
        self.page.goto(f"{self.url}/{'' if name == 'leaderboard' else name}{query}")
        self.ready()

    def follow(self, name: str) -> None:
        """Go to a page by the navigation, which loads no script anew; the first one by its address."""
        if not self.page.url.startswith(self.url):
            self.open(name)
            return
        title = PAGES[name].title
        self.page.get_by_role("link", name=title, exact=True).first.click()
        self.page.get_by_role("heading", name=title, level=1, exact=True).wait_for()
        self.ready()

    def ready(self) -> None:
        """Wait for the footer, and until nothing runs and every chart is drawn."""
        self.page.get_by_text("Script time").wait_for()
        self.page.wait_for_function(
            """() => {
                const app = document.querySelector('[data-testid="stApp"]');
                const idle = app && app.dataset.testScriptState === 'notRunning';
                const charts = [...document.querySelectorAll('[data-testid="stVegaLiteChart"]')];
                return idle && !document.querySelector('[data-testid="stSkeleton"]')
                    && charts.every(c => c.querySelector('canvas, svg.marks'));
            }"""
        )

    def resize(self, width: int, height: int) -> None:
        """Make the window another, and wait until the page fits into it."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.ready()

    def picture(self, name: str) -> None:
        """Keep a picture of the window."""
        PICTURES.mkdir(exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")

    def words(self) -> str:
        """Give the text of the page."""
        return self.page.locator('[data-testid="stMain"]').inner_text()

    def fine(self) -> None:
        """Check that nothing was complained of and nothing was asked of another machine."""
        assert self.complaints == []
        strangers = {
            address for address in self.addresses
            if not re.match(r"(http|ws)://127\.0\.0\.1:|data:|blob:", address)
        }  # fmt: skip
        assert strangers == set()


@pytest.fixture(scope="session")
def contexts(browser) -> Iterator[dict[str, Any]]:
    """Both looks, each with one cache: a window that loads the site's scripts anew costs a second."""
    found = {
        look: browser.new_context(
            color_scheme=look, viewport=DESKTOP, accept_downloads=True, reduced_motion="reduce"
        )
        for look in ("light", "dark")
    }
    for context in found.values():
        # Whatever would leave the machine is stopped, and is among the addresses all the same.
        context.route(re.compile(r"^https?://(?!127\.0\.0\.1:)"), lambda route: route.abort())
    yield found
    for context in found.values():
        context.close()


class Server:
    """The site over a store, started at once; `url` waits until it answers."""

    def __init__(self, root: Path) -> None:
        self._address = f"http://127.0.0.1:{(port := _free_port(0))}"
        self.process = subprocess.Popen(
            command(port, browser=False), env=environment(root), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    @property
    def url(self) -> str:
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self._address}/_stcore/health", timeout=5) as answer:
                    if answer.read() == b"ok":
                        return self._address
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the site does not answer")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


@pytest.fixture(scope="session")
def rich_store(tmp_path_factory, write) -> Store:
    """Real runs of mocks with texts; nine models on two tasks, two quantised, a partial one; a fit.

    And a run of a model that writes what must not be believed.
    """
    import harness

    store = Store.open(tmp_path_factory.mktemp("rich") / "store")
    _hostile(store, write)
    for model in ("mock:gold", "mock:noisy?accuracy=0.6"):
        harness.run(task="gsm8k", model=model, limit=12, store=str(store.root))
    for m in range(8):
        rng = random.Random(m)
        for task, n in (("demo/add", 60), ("demo/mul", 40)):
            values = [float(rng.random() < 1 / (1 + 2 ** (i / 8 - m / 2))) for i in range(n)]
            model = LONG if m == 5 else f"hf:m{m}"
            write(store, values, model=model, task=task, strategy="sample")
    values = [float(i % 4 != 0) for i in range(60)]
    for bits, simulated in (("int4", False), ("int2", True)):
        write(
            store, values, model="hf:m7", task="demo/add", quantisation=bits, simulated=simulated,
            strategy="sample",
        )  # fmt: skip
    write(
        store, [1.0, None, None, 1.0, None, None, None], statuses=STATUSES, n_planned=12,
        model="hf:partial", task="demo/add", finish=False, strategy="sample",
    )  # fmt: skip
    write(store, [0.0] * 60, model="mock:empty", task="demo/add", strategy="sample")
    sync(store)
    _fit(store)
    return store


def _hostile(store: Store, write) -> None:
    # As a baseline, so that its task is none that models are ranked on.
    run_id = write(
        store, [1.0, 0.0], task="demo/evil", model="mock:evil", text=lambda _: (EVIL, EVIL)
    )
    journal = store.journal(run_id)
    text = journal.read_bytes().replace(b'"demo-0"', encoder.encode(EVIL_ITEM))
    journal.write_bytes(text.replace(b'"compared as numbers"', encoder.encode(EVIL)))


def _fit(store: Store) -> None:
    from harness.runner.fitting import fit_store
    from harness.runner.human_minutes import read_minutes

    minutes, dates = store.root.parent / "minutes.csv", store.root.parent / "dates.csv"
    lines = [f"demo/add/demo-{i},{2 ** (i / 8):.4f}" for i in range(0, 60, 2)]
    minutes.write_text("item,human_minutes\n" + "\n".join(lines) + "\n")
    lines = [f"hf:m{m},2024-{1 + m:02d}-15" for m in range(8) if m != 5]
    dates.write_text("model,release_date\n" + "\n".join(lines) + "\n")
    fit_store(store, tasks=["demo/add"], minutes=read_minutes(minutes, dates))


@pytest.fixture(scope="session")
def evil() -> tuple[str, str]:
    """What `mock:evil` was asked and wrote, and the name of an item."""
    return EVIL, EVIL_ITEM


@pytest.fixture(scope="session")
def rich(rich_store) -> Iterator[Server]:
    """The site over `rich_store`, which no test changes."""
    server = Server(rich_store.root)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def changing(tmp_path_factory) -> Iterator[tuple[Server, Store]]:
    """The site over a store that does not exist yet; the tests that make it go in order."""
    store = Store(tmp_path_factory.mktemp("changing") / "store")
    server = Server(store.root)
    yield server, store
    server.stop()


@pytest.fixture
def visit(contexts) -> Iterator[Callable[..., Visit]]:
    """Come to a site: ``visit(server)``, light unless asked; afterwards nothing may be amiss."""
    visits: list[Visit] = []

    def come(server: Server, look: str = "light") -> Visit:
        visits.append(Visit(contexts, server.url, look))
        return visits[-1]

    yield come
    for one in visits:
        one.page.close()
    for one in visits:
        one.fine()


@pytest.fixture(scope="session", params=["light", "dark"])
def walk(request, contexts, rich) -> Iterator[Visit]:
    """One visitor a theme who goes from page to page."""
    one = Visit(contexts, rich.url, request.param)
    yield one
    one.page.close()
