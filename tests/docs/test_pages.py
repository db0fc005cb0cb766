"""Links lead somewhere, decisions name tests that exist, news can be collected."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = ("*.md", "changelog.d/*.md", "docs/**/*.md", "tasks/**/*.md")
PAGES = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
TYPES = {"feature", "bugfix", "breaking", "doc"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_are_there(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)", text)
    local = [target for target in targets if not target.startswith(("http://", "https://"))]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_its_shape_and_its_tests(page):
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem[:4]}: ")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Problem", "Choice", "Rejected", "Held by"]
    holding = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert holding
    for file, name in holding:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name}(" in source, f"{file} has no {name}"
    for path in re.findall(r"`((?:harness|tasks|scorers|data)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_decisions_are_numbered_and_listed():
    assert [page.stem[:4] for page in DECISIONS] == [f"{n + 1:04d}" for n in range(len(DECISIONS))]
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    assert all(f"]({page.name})" in index for page in DECISIONS)


def test_news_fragments_have_a_known_type():
    names = [path.name for path in (ROOT / "changelog.d").iterdir()]
    fragments = [name for name in names if name not in ("README.md", "template.md.jinja")]
    assert all(re.fullmatch(rf"\+[\w-]+\.({'|'.join(TYPES)})\.md", name) for name in fragments)


def test_news_can_be_collected():
    done = subprocess.run(
        [sys.executable, "-P", "-m", "towncrier", "build", "--draft", "--version", "9.9.9"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("## 9.9.9 (")
    for path in (ROOT / "changelog.d").glob("+*.md"):
        first = path.read_text(encoding="utf-8").split(":", maxsplit=1)[0].split("\n")[0]
        assert first in done.stdout
