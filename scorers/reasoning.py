"""Leave out what a model wrote while it was thinking: only the answer is read and scored."""

from __future__ import annotations

import re

_TAGS = r"(?:think|thinking|thought|reasoning)"
_OPEN = re.compile(rf"<{_TAGS}>", re.IGNORECASE)
_CLOSE = re.compile(rf"</{_TAGS}>", re.IGNORECASE)

_FINAL = re.compile(r"<\|channel\|>\s*final\b.*?<\|message\|>", re.DOTALL)
_THINKING_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?:analysis|commentary)\b.*?(?:<\|end\|>|\Z)", re.DOTALL
)
_CONTROL = re.compile(r"<\|(?:start|end|return|message|channel)\|>(?:assistant\b)?")


def remove_reasoning(text: str) -> str:
    """Remove reasoning from a model's text.

    Parameters
    ----------
    text : str
        The output as generated.

    Returns
    -------
    str
        The text without ``<think>…</think>`` (also ``thinking``, ``thought``, ``reasoning``) and
        without the analysis channel of channel-style models. An opening tag that is never closed
        takes all that follows with it: the answer never came. A closing tag without an opening one
        takes all that stands before it: chat templates may open the tag inside the prompt.

    Examples
    --------
    >>> remove_reasoning("<think>maybe 17?</think>The answer is 18.")
    'The answer is 18.'
    >>> remove_reasoning("maybe 17?</think>18")
    '18'
    >>> remove_reasoning("<think>maybe 17")
    ''
    """
    if "<" not in text:
        return text
    if "<|channel|>" in text:
        text = _final_channel(text)
    return _untag(text)


def _untag(text: str) -> str:
    kept, depth, start = "", 0, 0
    tags = sorted(
        [(m.start(), m.end(), 1) for m in _OPEN.finditer(text)]
        + [(m.start(), m.end(), -1) for m in _CLOSE.finditer(text)]
    )
    for begin, end, step in tags:
        if depth == 0 and step == 1:
            kept += text[start:begin]
        elif depth == 0:
            # Closed but never opened: whatever was kept so far was reasoning, too.
            kept = ""
        depth = max(0, depth + step)
        start = end
    return kept + text[start:] if depth == 0 else kept


def _final_channel(text: str) -> str:
    finals = list(_FINAL.finditer(text))
    if finals:
        text = text[finals[-1].end() :]
    else:
        text = _THINKING_CHANNEL.sub("", text)
    return _CONTROL.sub("", text)
