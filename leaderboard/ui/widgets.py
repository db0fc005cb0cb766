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
    first = default if default is not None and default in options else options[0]
    if names is str:
        index = list(options).index(first)
        return st.selectbox(label, options, index=index, key=key, help=help, bind="query-params")
    return _named(label, options, key, first, names, help)


def _named(
    label: str,
    options: Sequence[str],
    key: str,
    first: str,
    names: Callable[[str], str],
    help: str | None,  # noqa: A002
) -> str:
    """Bind by hand: Streamlit would put an option's name into the address, not the option."""
    asked, seen = st.query_params.get(key), f"{key}_address"
    followed = st.session_state.get(seen, "") != (asked or "")  # a link, not a click in the list
    if followed or st.session_state.get(key) not in options:
        st.session_state[key] = asked if asked in options else first
    chosen = st.selectbox(label, options, key=key, help=help, format_func=names)
    if chosen == first:
        st.query_params.pop(key, None)
    else:
        st.query_params[key] = chosen
    st.session_state[seen] = "" if chosen == first else chosen
    return chosen


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
