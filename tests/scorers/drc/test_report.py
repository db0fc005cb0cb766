"""Reports as KLayout writes them: names are never quoted, equal ones are one, nothing broken is read."""

from __future__ import annotations

import pytest

from scorers.drc.report import MOST_BYTES, BadReportError, read_report

rdb = pytest.importorskip("klayout.rdb", reason="needs the extra drc")
import klayout.db as db  # noqa: E402


@pytest.fixture
def written(tmp_path):
    """Write a report with KLayout's own module: {category: number of items}, twice the same allowed."""

    def made(*categories):
        report = rdb.ReportDatabase("test")
        cell = report.create_cell("TOP")
        for name, items in categories:
            category = report.create_category(name)
            for k in range(items):
                item = report.create_item(cell.rdb_id(), category.rdb_id())
                item.add_value(rdb.RdbItemValue(db.DBox(0, 0, 1 + k, 1)))
        path = tmp_path / "report.lyrdb"
        report.save(str(path))
        return path.read_bytes()

    return made


# How the file quotes them, as measured with 0.28.5 and 0.30.12.
@pytest.mark.parametrize("name", ["A_1", "A.W.1", "X'Y", "Ä", "A B", "M1/W-2", '"q"', "<a>&b"])
def test_a_category_has_the_name_that_the_deck_gave_it(written, name):
    counts, markers = read_report(written((name, 2), ("other", 0)))
    assert counts == {name: 2, "other": 0}
    assert [marker.category for marker in markers] == [name, name]
    assert markers[1].points == (((0.0, 0.0), (2.0, 1.0)),)


def test_two_categories_of_one_name_are_one(written):
    report = written(("A", 1), ("B", 0), ("A", 2))
    assert read_report(report)[0] == {"A": 3, "B": 0}


def test_markers_end_where_there_are_many(written):
    counts, markers = read_report(written(("A", 60)))
    assert (counts["A"], len(markers)) == (60, 50)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no report"),
        (b"<html/>", "no report"),
        (b"<report-database><categories>", "cannot be read"),
        (b'<!DOCTYPE r [<!ENTITY a "b">]><report-database/>', "entities"),
        (b"<report-database/>" + b" " * MOST_BYTES, "more than"),
        (b"<report-database>\xff\xfe\x00</report-database>", "cannot be read"),
    ],
)
def test_what_is_no_report_is_refused(data, why):
    with pytest.raises(BadReportError, match=why):
        read_report(data)


def test_an_item_of_a_category_that_is_not_there_is_no_report(written):
    broken = written(("A", 1)).replace(b"<category>A</category>", b"<category>B</category>")
    with pytest.raises(BadReportError):
        read_report(broken)
