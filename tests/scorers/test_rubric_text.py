"""Where a proof stands in an answer: upstream's order, one case a line."""

from __future__ import annotations

import pytest

from scorers.proof_text import extract_proof

CASES = {
    "line": ("Plan.\n## Proof\nA.", "A."),
    "line in bold": ("## **Proof**:\nA.", "A."),
    "line, small letters": ("##   proof\nA.", "A."),
    "line before environment": ("\\begin{proof}no\\end{proof}\n## Proof\nA.", "A."),
    "line before other headings": ("### Proof\nno\n## Proof\nA.", "A."),
    "the first line, to the end": ("## Proof\nA.\n## Proof\nB.", "A.\n## Proof\nB."),
    "windows line ends": ("## Proof\r\nA.\r\nB.", "A.\nB."),
    "environment": ("x \\begin{proof}A.\\end{proof} y", "A."),
    "environment with a name": ("\\begin{proof}[Proof of 1]A.\\end{proof}", "A."),
    "environment before heading": ("# Proof\nno \\begin{proof}A.\\end{proof}", "A."),
    "two environments": (
        "\\begin{proof}A.\\end{proof} B. \\begin{proof}C.\\end{proof}",
        "A.\\end{proof} B. \\begin{proof}C.",
    ),
    "environment without an end": ("\\begin{proof}A.", "A."),
    "one hash": ("# Proof\nA.", "A."),
    "four hashes": ("#### Proof:\nA.", "A."),
    "text on the heading's line": ("### Proof: A is\nB.", "A is\nB."),
    "numbered heading": ("### 2. Formal Proof\nA.", "A."),
    "proof of something": ("### Proof of part (a)\nA.", "A."),
    "heading before section": ("\\section*{Proof}\nno\n### Proof\nA.", "A."),
    "section": ("\\section*{Proof}\nA.", "A."),
    "subsection without a star": ("\\subsection{Proof.} A.", "A."),
    "none of them": ("We prove it. A.", "We prove it. A."),
    "an idea is no proof": ("### Proof idea\nA.", "### Proof idea\nA."),
    "a word inside a line": ("See ## Proof below.", "See ## Proof below."),
    "reasoning removed": ("<think>## Proof\nno</think>## Proof\nA.", "A."),
    "reasoning without a beginning": ("no</think>\n## Proof\nA.", "A."),
    "empty": ("", ""),
    "white space": (" \n\t", ""),
    "empty section": ("Plan.\n## Proof\n \n", ""),
    "empty environment": ("\\begin{proof}\n\\end{proof}", ""),
    "environment of nothing below a line": ("## Proof\n\\begin{proof} \\end{proof}", ""),
    "an empty fence": ("## Proof\n```latex\n```", ""),
    "reasoning that never ends": ("<think>## Proof\nA.", ""),
}


@pytest.mark.parametrize(("text", "proof"), CASES.values(), ids=CASES)
def test_where_the_proof_stands(text, proof):
    assert extract_proof(text)[0] == proof


def test_what_was_read_is_named():
    assert [extract_proof(text)[1] for text in ("A.", "## Proof\nA.", "# Proof\nA.")] == [
        "the whole answer", 'after the line "## Proof"', "after a heading Proof",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["#" * 50_000, "*" * 50_000, "## " * 20_000, "\\begin{proof}" * 5_000]
)
def test_hostile_texts_take_no_time(text):
    # Quadratic work would take minutes here.
    assert extract_proof(text)
