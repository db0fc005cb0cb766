"""The document that people read while they grade: one HTML file that asks nothing of anybody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment
from msgspec import Struct

from harness.core.records import RunStarted

# What models wrote is text here and nothing else: everything is escaped, and no script may run.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Grading of {{ run.task }}</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid #8886; padding: .7rem;
  border-radius: 4px; font: 14px/1.5 ui-monospace, monospace; }
table { border-collapse: collapse; } td, th { border: 1px solid #8886; padding: .3rem .6rem;
  text-align: left; vertical-align: top; }
article { border-top: 3px solid #8886; margin-top: 2.5rem; break-before: page; }
.answer { border-left-width: 5px; }
</style>
</head>
<body>
<h1>Grading of {{ run.task }}</h1>
<p>Run {{ run.run_id }}{% if model is not none %}, model {{ model }}{% endif %}.
{{ shown | length }} answers. Each has a row for every criterion in the table beside this file
(<code>{{ table }}</code>): write whole points from 0 to what is possible into <em>points</em>, your name
into <em>grader</em>, and into <em>comment</em> what you like; leave the other columns as they are. An
answer may be left out; one that you begin needs points for all of its criteria. Several people may
fill in the same table (copy the rows) or a copy each. Save it as CSV in UTF-8.</p>
<nav><ol>{% for one in shown %}
<li><a href="#{{ one.content }}">{{ one.item_id }}{% if one.epoch %} (repeat {{ one.epoch }}){% endif %}</a></li>
{%- endfor %}
</ol></nav>
{% for one in shown %}
<article id="{{ one.content }}">
<h2>{{ loop.index }}. {{ one.item_id }}</h2>
<p>Repeat (<em>epoch</em>) {{ one.epoch }}, attempt {{ one.attempt }}
{%- if one.category %}, {{ one.category }}{% endif %}.</p>
<h3>Statement</h3>
<pre>{{ one.statement }}</pre>
{% if one.choices %}<ol start="0">{% for choice in one.choices %}<li>{{ choice }}</li>{% endfor %}</ol>{% endif %}
<h3>Answer</h3>
{% if one.cut %}<p>It was cut at the token limit; grade it as it stands.</p>{% endif %}
<pre class="answer">{{ one.answer }}</pre>
<h3>Rubric</h3>
<table>
<tr><th>criterion_id</th><th>criterion</th><th>points_possible</th></tr>
{% for id, points, criterion, fatal in one.criteria %}
<tr><td>{{ id }}</td><td>{{ criterion }}{% if fatal %} <strong>Fatal: 0 points here make the whole 0.</strong>{% endif %}</td><td>{{ points }}</td></tr>
{% endfor %}
</table>
{% if one.common_errors %}<h3>Common errors</h3>
<ul>{% for error in one.common_errors %}<li>{{ error }}</li>{% endfor %}</ul>{% endif %}
{% if one.reference %}<h3>Reference</h3>
<pre>{{ one.reference }}</pre>{% endif %}
</article>
{% endfor %}
</body>
</html>
"""


class Shown(Struct, frozen=True, kw_only=True):
    """One answer as the document shows it; `criteria` are id, points, text, and whether fatal."""

    item_id: str
    epoch: int
    attempt: int
    content: str
    category: str
    statement: str
    choices: Sequence[str]
    answer: str
    cut: bool
    reference: str
    common_errors: Sequence[str]
    criteria: Sequence[tuple[str, int, str, bool]]


def write_page(path: Path, run: RunStarted, shown: Sequence[Shown], model: str | None) -> None:
    """Write the document.

    Parameters
    ----------
    path : Path
        The table has the same name and ends in ``.csv``.
    run : RunStarted
    shown : sequence of Shown
    model : str or None
        Named only where that is wanted.
    """
    template = Environment(autoescape=True).from_string(_PAGE)
    table = path.with_suffix(".csv").name
    text = template.render(run=run, shown=shown, model=model, table=table)
    # A lone half of a character could not be written, and the rest of an answer is worth reading.
    path.write_text(text, encoding="utf-8", errors="replace")
