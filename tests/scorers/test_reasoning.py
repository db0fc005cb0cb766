from __future__ import annotations

import pytest

from scorers.reasoning import remove_reasoning


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("18", "18"),
        ("2 < 3", "2 < 3"),
        ("<b>18</b>", "<b>18</b>"),
        ("<think>17</think>18", "18"),
        ("<think>17</think>18<think>16</think> eggs", "18 eggs"),
        ("<THINK>17</THINK>18", "18"),
        ("<thinking>17</thinking>18", "18"),
        ("<reasoning>17</reasoning>18", "18"),
        ("<think>17", ""),
        ("18 <think>17", "18 "),
        ("17</think>18", "18"),
        ("<think>a<think>b</think>c</think>18", "18"),
        ("a</think>b</think>18", "18"),
        (
            "<|channel|>analysis<|message|>17<|end|><|start|>assistant<|channel|>final<|message|>18",
            "18",
        ),
        ("<|channel|>analysis<|message|>17<|end|><|channel|>final<|message|>18<|return|>", "18"),
        ("<|channel|>analysis<|message|>17", ""),
    ],
)
def test_only_the_answer_is_kept(text, kept):
    assert remove_reasoning(text) == kept
