"""One attempt on the page. What a model wrote goes through `plain` or `lines` only: never as markup."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from leaderboard.columns import Row, cells, text
from leaderboard.rows.attempt import Attempt, Choice, ScoreLine, Turn, messages, visible
from leaderboard.ui.table import html_table

MOST = 20_000
"""Characters of a text that are drawn; the file has all."""

_SCORES = ("stands", "attempt", "metric", "value", "ended", "passed", "answer", "reason", "scorer",
           "scorer_version", "judge", "seq", "replaces")  # fmt: skip


def plain(body: str, key: str, *, height: int | None = None, offer: bool = True) -> None:
    """Draw a text as it is: no markup, hidden characters as escapes, with a button that copies it.

    Parameters
    ----------
    body : str
        Anything.
    key : str
        Of the file that a long text is given as.
    height : int or None
        Pixels before it scrolls.
    offer : bool
        Draw a button for the file where the text is not shown as it is.
    """
    if not body:
        st.caption("(empty)")
        return
    head = body[:MOST]
    shown = visible(head)
    st.code(shown, language=None, wrap_lines=True, height=height or "content")
    if len(body) > MOST:
        st.caption(f"The first {MOST:,} of {len(body):,} characters; the file has all.")
    if shown != head:
        st.caption("Control and hidden characters are shown as escapes; the file has them as sent.")
    if offer and (len(body) > MOST or shown != head):
        file(body, key)


def file(body: str, key: str) -> None:
    """Draw a button that gives a text's exact bytes as a file."""
    st.download_button(
        "Exact bytes", data=partial(body.encode), file_name=f"{key}.txt", mime="text/plain",
        key=f"{key}_bytes", icon=":material/download:", on_click="ignore",
    )  # fmt: skip


def lines(facts: Mapping[str, Any]) -> None:
    """Draw facts as one line that wraps, everything escaped; those without a value are left out."""
    st.html(facts_html(facts))


def facts_html(facts: Mapping[str, Any]) -> str:
    """Write facts as HTML.

    Examples
    --------
    >>> "&lt;b&gt;" in facts_html({"Item": "<b>"})
    True
    """
    parts = [
        f'<span style="margin-right:1.2rem"><span style="opacity:.7">{html.escape(name)}</span> '
        f"<b>{html.escape(visible(str(value)))}</b></span>"
        for name, value in facts.items()
        if value not in (None, "")
    ]
    return f'<div style="line-height:1.7;overflow-wrap:anywhere">{" ".join(parts)}</div>'


def prompt(found: Attempt) -> None:
    """Draw the prompt turn by turn, with a switch to what was sent as it was stored."""
    if found.prompt is None:
        st.caption("The texts of this run are not in the store.")
        return
    turns = messages(found.prompt)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Prompt**")
        raw = turns is None or st.toggle(
            "Raw", key="raw_prompt", help="One text, byte for byte as the journal has it."
        )
        file(found.prompt, "prompt")
    if raw or turns is None:
        plain(found.prompt, "prompt", offer=False)
        return
    for i, (role, said) in enumerate(turns):
        st.caption(role)
        plain(said, f"prompt_{i}", offer=False)


def scores(found: Sequence[ScoreLine]) -> None:
    """Draw every verdict there was, oldest first, and the explanations below."""
    if not found:
        st.caption("No verdict was given.")
        return
    st.html(plain_table(found, _SCORES))
    # The metrics of one verdict share its explanation.
    for score in {score.seq: score for score in found if score.explanation}.values():
        st.caption(f"Record {score.seq}, {score.stands}:")
        plain(score.explanation or "", f"explanation_{score.seq}")


def turns(found: Sequence[Turn]) -> None:
    """Draw what happened in the attempt, in order."""
    if not found:
        st.caption("One call, and nothing kept beside it.")
    for i, turn in enumerate(found):
        lines({turn.heading: turn.facts or " "})
        for j, (name, said) in enumerate(turn.texts):
            if name:
                st.caption(name)
            plain(said, f"turn_{i}_{j}", height=300 if said.count("\n") > 12 else None)


def bars(found: Sequence[Choice]) -> None:
    """Draw the log-probabilities of the options, each with a bar of its share."""
    rows = "".join(
        f'<tr><td style="padding:.1rem .8rem .1rem 0">{html.escape(choice.option)}</td>'
        f'<td style="padding:.1rem .8rem;text-align:right">{choice.logprob:.3f}</td>'
        f'<td style="width:60%"><div style="background:#0072B2;height:.8rem;'
        f'width:{100 * choice.share:.2f}%;min-width:1px"></div></td>'
        f'<td style="padding:.1rem .8rem;text-align:right">{text(choice.share, "share")}</td></tr>'
        for choice in found
    )
    st.html(
        '<table style="width:100%;font-size:.9rem"><thead><tr><th style="text-align:left">Option'
        '</th><th style="text-align:right">Log-probability</th><th></th>'
        f'<th style="text-align:right">Share</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def plain_table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Write rows as an HTML table, hidden characters as escapes; empty columns are left out."""
    kept = {
        name: [visible(value) if isinstance(value, str) else value for value in values]
        for name, values in cells(rows, columns).items()
        if any(value not in (None, "") for value in values)
    }
    return html_table(kept)
