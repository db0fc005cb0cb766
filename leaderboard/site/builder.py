"""One site while it is written: pages through the templates, charts as SVG, tables as files."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.store.layout import Store
from leaderboard.charts.common import AnyChart
from leaderboard.charts.saving import to_html, to_svg
from leaderboard.columns import Row, as_dict
from leaderboard.exports import table_bytes
from leaderboard.site.parts import Chart, Links, Note, Page, Part

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NAVIGATION = (
    ("Leaderboard", "index.html"), ("Tasks", "tasks.html"), ("Models", "models.html"),
    ("Compare", "compare.html"), ("Trade-off", "tradeoff.html"), ("Scale", "scale.html"),
    ("Horizon", "horizon.html"), ("Runs", "runs.html"), ("About", "about.html"),
)  # fmt: skip

# A chart that answers the pointer compiles its expressions; it may load nothing either.
_CHART_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CLIP = re.compile(r'(id="|url\(#)clip(\d+)')


class Site:
    """What the pages are made from, and the folder that they go to.

    Parameters
    ----------
    con : DuckDBPyConnection
        A snapshot; all pages are of this one.
    store : Store
        Where texts and journals are.
    folder : Path
        Exists and is empty.
    generation : str or None
        Of the snapshot.
    embed : bool
        Leave the header with its links out, for frames in other pages.
    """

    def __init__(
        self, con: DuckDBPyConnection, store: Store, folder: Path, generation: str | None,
        *, embed: bool = False,
    ) -> None:  # fmt: skip
        self.con = con
        self.store = store
        self.folder = folder
        self.version = version("bridge-harness")
        self.generation = generation
        self.tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        loader = PackageLoader("leaderboard.site")
        env = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        style, script = (loader.get_source(env, f"site.{kind}")[0] for kind in ("css", "js"))
        env.globals |= {
            # Own files, allowed by hash: whatever a name smuggles in has another one and is not run.
            "style": Markup(style), "script": Markup(script), "prose": prose,  # noqa: S704
            "policy": f"default-src 'none'; img-src 'self' file:; style-src {_hash(style)}; "
            f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'",
            "version": self.version, "generation": generation, "navigation": NAVIGATION,
            "embed": embed,
        }  # fmt: skip
        self._template = env.get_template("page.html.jinja")

    def page(self, page: Page, section: str | None = None) -> None:
        """Write a page.

        Parameters
        ----------
        page : Page
        section : str or None
            Path of the page in the header that it belongs to; its own by default.
        """
        root = "../" * page.path.count("/")
        text = self._template.render(page=page, root=root, section=section or page.path)
        self.write(page.path, text.encode())

    def chart(
        self, name: str, draw: Callable[..., AnyChart], alt: str, *, interactive: bool = False
    ) -> Chart:
        """Draw a chart for both themes.

        Parameters
        ----------
        name : str
            Of the files.
        draw : callable
            Takes `dark`.
        alt : str
            What it shows, for those who do not see it.
        interactive : bool
            Write a page for it too, with its script inside (0.9 MB).
        """
        size = ("", "")
        for theme in ("dark", "light"):
            svg = _steady(to_svg(draw(dark=theme == "dark")))
            self.write(f"charts/{name}-{theme}.svg", svg.encode())
            found = re.match(r'<svg [^>]*width="([\d.]+)" height="([\d.]+)"', svg)
            size = (found[1], found[2]) if found else size
        more = f"charts/{name}.html" if interactive else None
        if more is not None:
            policy = f'<meta http-equiv="Content-Security-Policy" content="{_CHART_POLICY}">'
            html = to_html(draw(dark=False)).replace(
                '<meta charset="utf-8">', f'<meta charset="utf-8">{policy}', 1
            )
            self.write(more, html.encode())
        return Chart(name, alt, *size, more)

    def keep(self, name: str, rows: Iterable[Row], **facts: Any) -> str:
        """Put rows into a table of the folder `data`; give its name.

        Parameters
        ----------
        name : str
            Of the table; rows of several pages gather in one.
        rows : iterable of Struct or mapping
        **facts
            The same in all these rows, such as the task.
        """
        self.tables[name] += [as_dict(row) | facts for row in rows]
        return name

    def cut(
        self, rows: Sequence[Row], most: int, name: str, what: str, **facts: Any
    ) -> tuple[Sequence[Row], list[Part]]:
        """Leave out what is too much for a page, and say so beside a file of all.

        Parameters
        ----------
        rows : sequence of Struct or mapping
        most : int
            Rows that the page shows.
        name : str
            Of the file, in the folder `data`.
        what : str
            What the rows are, in their order: ``items, hardest first``.
        **facts
            The same in all rows of the file.

        Returns
        -------
        rows, parts
            What to show, and what to say above it; nothing where all rows are shown.
        """
        if len(rows) <= most:
            return rows, []
        facts |= {"generation": self.generation, "code_version": self.version}
        self.write(f"data/{name}.csv", table_bytes(rows, "csv", facts=facts))
        said = f"Shown are the first {most:,} of {len(rows):,} {what}. The file has all of them:"
        return rows[:most], [
            Note(said),
            Links([("All rows of this table as CSV", f"data/{name}.csv")]),
        ]

    def write_tables(self) -> dict[str, int]:
        """Write every table as CSV, strict JSON and Parquet; give the rows of each."""
        facts = {"generation": self.generation, "code_version": self.version}
        for name, rows in sorted(self.tables.items()):
            columns = list(dict.fromkeys(column for row in rows for column in row))
            for form in ("csv", "json", "parquet"):
                content = table_bytes(rows, form, columns, facts)
                self.write(f"data/{name}.{form}", content)
        return {name: len(rows) for name, rows in sorted(self.tables.items())}

    def write(self, path: str, content: bytes) -> None:
        """Write a file of the site."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _steady(svg: str) -> str:
    """Take control characters out, which are no XML, and number clip paths from 0.

    The drawing library counts them on from chart to chart; the same chart is to give the same bytes.
    """
    numbers: dict[str, int] = {}
    svg = _CLIP.sub(lambda m: f"{m[1]}clip{numbers.setdefault(m[2], len(numbers))}", svg)
    return _CONTROL.sub("�", svg)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def prose(text: str) -> Markup:
    r"""Write the little Markdown of own texts: paragraphs, one list, tables, bold, code.

    Parameters
    ----------
    text : str
        Trusted only as far as that: everything in it is escaped.

    Examples
    --------
    >>> prose("- **A.** b < `c`\n  d")
    Markup('<div class="prose"><ul><li><strong>A.</strong> b &lt; <code>c</code> d</li></ul></div>')
    """
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.split("\n")
        if lines[0].startswith("- "):
            items = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
            inner = "".join(f"<li>{_inline(' '.join(item.split()))}</li>" for item in items)
            blocks.append(f"<ul>{inner}</ul>")
        elif lines[0].startswith("|"):
            blocks.append(_prose_table([line.strip("|").split("|") for line in lines]))
        else:
            blocks.append(f"<p>{_inline(' '.join(block.split()))}</p>")
    return Markup(f'<div class="prose">{"".join(blocks)}</div>')  # noqa: S704, escaped by _inline


def _prose_table(rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{_inline(cell.strip())}</th>' for cell in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{_inline(cell.strip())}</td>" for cell in row) + "</tr>"
        for row in rows[2:]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _inline(text: str) -> str:
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(text)))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)
