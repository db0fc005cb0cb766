"""Filters whose values stand in the address, so that a view can be sent to somebody.

The key of a widget is its name in the address; a value equal to the default is left out there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st


def choose(
    label: str,
    options: Sequence[str],
    key: str,
    *,
    default: str | None = None,
    help: str | None = None,  # noqa: A002 - Streamlit's own word
    names: Callable[[str], str] = str,
) -> str | None:
    """Let one of several be chosen; None where there are none.

    Parameters
    ----------
    label : str
    options : sequence of str
    key : str
        Name in the address.
    default : str or None
        The first option where it is None or not among them.
    help : str or None
    names : callable
        How an option is shown.
    """
    if not options:
        return None
    index = list(options).index(default) if default is not None and default in options else 0
    return st.selectbox(
        label, options, index=index, key=key, help=help, format_func=names, bind="query-params"
    )


def choose_many(
    label: str,
    options: Sequence[str],
    key: str,
    *,
    help: str | None = None,  # noqa: A002
    names: Callable[[str], str] = str,
    placeholder: str = "all",
) -> tuple[str, ...]:
    """Let several be chosen; none chosen means all, and gives an empty tuple."""
    chosen = st.multiselect(
        label, options, key=key, help=help, format_func=names, placeholder=placeholder,
        bind="query-params",
    )  # fmt: skip
    return tuple(chosen)


def switch(label: str, key: str, *, value: bool = False, help: str | None = None) -> bool:  # noqa: A002
    """Let something be switched on or off."""
    return st.toggle(label, value=value, key=key, help=help, bind="query-params")


def search_text(label: str, key: str, *, help: str | None = None) -> str:  # noqa: A002
    """Let a text be typed; empty by default."""
    return st.text_input(label, key=key, help=help, bind="query-params") or ""
