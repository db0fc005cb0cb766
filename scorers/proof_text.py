"""Find the proof in a model's answer: only the proof part is graded."""

from __future__ import annotations

import re

from scorers.reasoning import remove_reasoning

# What may stand beside the word in a heading; "Proof idea" or "Proof sketch" announces no proof.
_WORD = (
    r"(?:\d+[.)][ \t]*)?(?:(?:final|formal|full|complete|detailed)[ \t]+)?proof"
    r"(?:[ \t]+of\b[^\n]*)?"
)
# A text may go on behind the heading's colon: "### Proof: let A be …".
_REST = r"[ \t]*(?:[:.][*_ \t]*(?P<rest>[^\n]*))?"

_RULES = (
    (
        'after the line "## Proof"',
        re.compile(
            r"^[ \t]*##[ \t]*[*_]*proof[*_]*[ \t]*[:.]?[*_]*[ \t]*$", re.IGNORECASE | re.MULTILINE
        ),
    ),
    ("in the environment proof", re.compile(r"\\begin\{proof\*?\}(?:\[[^\]\n]*\])?")),
    (
        "after a heading Proof",
        re.compile(
            rf"^[ \t]*#{{1,6}}[ \t]*[*_]*{_WORD}[*_]*{_REST}$", re.IGNORECASE | re.MULTILINE
        ),
    ),
    (
        "after a section Proof",
        re.compile(r"\\(?:sub)*section\*?\{\s*proof\s*[.:]?\s*\}", re.IGNORECASE),
    ),
)
_END = re.compile(r"\\end\{proof\*?\}")


def extract_proof(text: str) -> tuple[str, str]:
    r"""Find the proof in an answer, by the first of these that is there.

    In upstream's order: a line ``## Proof``, the environment ``\begin{proof}``, any heading
    ``#…# Proof``, a section ``\section*{Proof}``, else the whole answer. The first heading counts,
    and all that follows it: nothing that belongs to the proof is lost. Of several environments all
    is taken from the first beginning to the last end, since lemmas have environments of their own.

    Parameters
    ----------
    text : str
        The output as generated; reasoning is removed first.

    Returns
    -------
    proof : str
        Empty where nothing but marks stands there.
    rule : str
        What was read.

    Examples
    --------
    >>> extract_proof("A plan.\n## Proof\nLet $x = 1$.")
    ('Let $x = 1$.', 'after the line "## Proof"')
    >>> extract_proof("\\begin{proof}Clear.\\end{proof} Done.")
    ('Clear.', 'in the environment proof')
    >>> extract_proof("<think>hm</think>## Proof\n")[0]
    ''
    """
    text = remove_reasoning(text).replace("\r\n", "\n")
    rule, proof = "the whole answer", text
    for name, pattern in _RULES:
        found = pattern.search(text)
        if found is None:
            continue
        rule, proof = name, text[found.end() :]
        if name == "in the environment proof":
            ends = list(_END.finditer(proof))
            proof = proof[: ends[-1].start()] if ends else proof
        elif found.groupdict().get("rest"):
            proof = found["rest"] + proof
        break
    # An environment without a word in it, or a lone code fence, is no proof.
    bare = re.sub(r"\\(?:begin|end)\{\w+\*?\}|^```\w*$", "", proof, flags=re.MULTILINE)
    return (proof.strip() if re.search(r"\w", bare) else ""), rule
