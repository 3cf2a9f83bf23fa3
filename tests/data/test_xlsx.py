"""Excel files: what a sheet's cells mean, which sheet is read, and what becomes of damaged and hostile workbooks."""

import datetime
import os
import subprocess
import sys
import textwrap
import time
import zipfile

import numpy as np
import pytest

from princomp.data import DataError, read

pytestmark = pytest.mark.needs("openpyxl", "pyarrow")


def book(path, *sheets, **named):
    """Write sheets: lists of rows."""
    import openpyxl

    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in ({f"Sheet{i}": rows for i, rows in enumerate(sheets, 1)} | named).items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def whole(rows):
    return np.concatenate([rows.block(i) for i in range(len(rows.offsets) - 1)])


def with_parts(path, **parts):
    """Change parts of a workbook: their names, without folder and ending, and new contents."""
    with zipfile.ZipFile(path) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, old in content.items():
            stem = os.path.basename(name).split(".")[0]
            new = parts.get(stem, old)
            archive.writestr(name, new(old) if callable(new) else new)
    return path


# --- what cells mean ------------------------------------------------------------------------------


def test_a_sheet_is_a_table_as_a_csv_is(tmp_path):
    day = datetime.datetime(2024, 2, 29)
    rows = [
        ["who", "height", "ok", "day", "group", "gap"],
        ["p", 1.62, True, day, 'a, "b"', 1],
        ["q", 181, False, day.replace(hour=13), None, "NA"],
        ["r", 0.3125, True, datetime.time(8, 30), "two\nlines", "#N/A"],
        ["s", -1e-300, False, None, 7, "#DIV/0!"],
    ]
    found = read(book(tmp_path / "x.xlsx", rows), index="who")
    assert found.names == ("height", "ok", "gap")
    expected = [[1.62, 1, 1], [181, 0, np.nan], [0.3125, 1, np.nan], [-1e-300, 0, np.nan]]
    assert np.array_equal(whole(found), expected, equal_nan=True)
    assert found.sample_names == ("p", "q", "r", "s")
    assert {name: cells.tolist() for name, cells in found.labels.items()} == {
        "day": ["2024-02-29", "2024-02-29 13:00:00", "08:30:00", ""],
        "group": ['a, "b"', "", "two lines", "7"],
    }
    assert found.notes == (
        f"{tmp_path / 'x.xlsx'}: 2 cells of errors, such as #N/A or #DIV/0!, read as missing.",
        "Left out 2 text columns: day, group.",
    )


def test_the_same_options_as_of_other_tables(tmp_path):
    path = book(tmp_path / "x.xlsx", [["id", "kind", "a", "b"], [7, 1, 1, 2], [8, 2, 3, 4]])
    rows = read(path, label="kind", index="id", drop="b")
    assert (rows.names, rows.sample_names, rows.labels["kind"].tolist()) == (("a",), ("7", "8"), ["1", "2"])
    with pytest.raises(DataError, match=r"x\.xlsx has no column 'kinds': did you mean kind\?"):
        read(path, label="kinds")
    numbers = book(tmp_path / "y.xlsx", [[1, 2], [3, 4]])
    assert read(numbers).shape == (2, 2)
    assert read(numbers, header=True).names == ("1", "2")
    with pytest.raises(DataError, match=r"x\.xlsx is not delimited text"):
        read(path, decimal=",")


def test_rows_and_columns_around_the_table_are_no_part_of_it(tmp_path):
    rows = [[], [None, None], ["a", "b", None, None], [1, 2, None, None], [3, 4], [None], []]
    found = read(book(tmp_path / "x.xlsx", rows))
    assert (found.names, whole(found).tolist(), found.notes) == (("a", "b"), [[1, 2], [3, 4]], ())
    rows = [["a", "b"], [1, 2], [], [3, 4]]
    assert np.array_equal(whole(read(book(tmp_path / "y.xlsx", rows))), [[1, 2], [np.nan] * 2, [3, 4]], equal_nan=True)
    rows = [["a"], [1], [], [3]]
    assert np.array_equal(whole(read(book(tmp_path / "z.xlsx", rows))), [[1], [np.nan], [3]], equal_nan=True)


def test_a_sheet_without_numbers_says_its_columns(tmp_path):
    path = book(tmp_path / "x.xlsx", [["A title"], [], ["a", "b"], [1, 2]])
    with pytest.raises(DataError, match=r"has no column of numbers; its columns are A title, column 1\.$"):
        read(path)


def test_the_row_of_a_cell_that_is_no_number_is_named(tmp_path):
    rows = [[], ["a", "b"], *([i, i % 7] for i in range(30)), [30, "high\nest"]]
    notes = read(book(tmp_path / "x.xlsx", rows)).notes
    assert "x.xlsx, line 33 holds 'high est'" in notes[0]


def test_merged_cells_belong_to_the_first(tmp_path):
    import openpyxl

    path = book(tmp_path / "x.xlsx", [["a", "b"], [1, 2], [None, 3]])
    made = openpyxl.load_workbook(path)
    made.active.merge_cells("A2:A3")
    made.save(path)
    assert np.array_equal(whole(read(path)), [[1, 2], [np.nan, 3]], equal_nan=True)


def test_one_formula_without_a_value_is_pointed_out(tmp_path):
    path = book(tmp_path / "x.xlsx", [["a", "b"], [1, 2], [3, "=A2+1"], [5, 6]])
    rows = read(path)
    assert np.isnan(whole(rows)[1, 1])
    assert "formulae without values" in rows.notes[0]


def test_formulae_without_values_are_pointed_out(tmp_path):
    path = book(tmp_path / "x.xlsx", [["a", "double"], [1, "=2*A2"], [3, "=2*A3"]])
    rows = read(path)
    assert np.array_equal(whole(rows), [[1, np.nan], [3, np.nan]], equal_nan=True)
    assert rows.notes[0] == (
        f"{path} has formulae without values, which were read as missing: open it in a spreadsheet program and save it."
    )
    with_parts(path, sheet1=lambda old: old.replace(b"<v></v>", b"<v>6</v>").replace(b"<v />", b"<v>6</v>"))
    rows = read(path)
    assert (whole(rows).tolist(), rows.notes) == ([[1, 6], [3, 6]], ())


# --- sheets and files -----------------------------------------------------------------------------


def test_the_first_sheet_is_read_unless_another_is_asked_for(tmp_path):
    path = book(tmp_path / "x.xlsx", Data=[["a"], [1]], More=[["b"], [2]], Last=[])
    rows = read(path)
    assert (rows.names, rows.notes) == (
        ("a",),
        (f"Read the first sheet of {path}, 'Data'; sheet= picks another one: More, Last.",),
    )
    rows = read(path, sheet="More")
    assert (rows.names, rows.notes) == (("b",), ())
    with pytest.raises(DataError, match=r"x\.xlsx has no sheet 'data'; it has Data, More, Last\."):
        read(path, sheet="data")
    with pytest.raises(DataError, match=r"x\.xlsx, sheet 'Last' is empty\."):
        read(path, sheet="Last")
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"x\.csv has no sheets: sheet is for \.xlsx\."):
        read(tmp_path / "x.csv", sheet="Data")


def test_several_workbooks_with_the_same_columns(tmp_path):
    for i in range(3):
        book(tmp_path / f"part-{i}.xlsx", [["a", "b"], [i, 2], [i, "NA"]])
    rows = read(tmp_path / "part-*.xlsx")
    assert whole(rows)[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    book(tmp_path / "part-3.xlsx", [["a", "c"], [1, 2]])
    with pytest.raises(
        DataError, match=r"part-3\.xlsx has other columns than .*part-0\.xlsx: column 1 is 'c', not 'b'"
    ):
        read(tmp_path / "part-*.xlsx")


def test_a_large_sheet_is_spilled(tmp_path, monkeypatch):
    monkeypatch.setattr("princomp.data.reading.KEPT_BYTES", 1000)
    X = np.random.default_rng(0).normal(size=(100, 4)).round(6)
    path = book(tmp_path / "x.xlsx", [list("abcd"), *X.tolist()])
    rows = read(path)
    assert type(rows).__name__ == "FileRows"
    assert np.array_equal(whole(rows), X)


# --- damaged and hostile workbooks ------------------------------------------------------------------

HEAD = b'<?xml version="1.0"?>'
SPACE = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (i, b"&l%d;" % (i - 1) * 10) for i in range(1, 10))
BOMB = HEAD + b'<!DOCTYPE sst [<!ENTITY l0 "ha">%s]><sst %s><si><t>&l9;</t></si></sst>' % (LAUGHS, SPACE)
QUADRATIC = HEAD + b'<!DOCTYPE sst [<!ENTITY l "%s">]><sst %s><si><t>%s</t></si></sst>' % (
    b"h" * 10**5,
    SPACE,
    b"&l;" * 10**4,
)
OUTSIDE = HEAD + b'<!DOCTYPE sst [<!ENTITY l SYSTEM "file:///etc/passwd">]><sst %s><si><t>&l;</t></si></sst>' % SPACE


def with_texts(path, content):
    """Add a part of texts that cells share, as Excel writes it."""
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    entry = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%s"/></Types>' % kind
    with_parts(path, **{"[Content_Types]": lambda old: old.replace(b"</Types>", entry)})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", content)


def far_out(old):
    """Twenty thousand rows, each with one cell in the last column."""
    rows = b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (i, i) for i in range(1, 20_001))
    return HEAD + b"<worksheet %s><sheetData>" % SPACE + rows + b"</sheetData></worksheet>"


HOSTILE = {
    "not a zip": (lambda path: path.write_bytes(b"PK hello"), DataError, "cannot be read as an Excel file"),
    "another zip": (lambda path: zipfile.ZipFile(path, "w").close(), DataError, "cannot be read as an Excel file"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-100]), DataError, "cannot be read as an Excel file"),
    "XML that ends early": (
        lambda path: with_parts(path, sheet1=lambda old: old[:-30]),
        DataError,
        "cannot be read as an Excel file",
    ),
    "a billion laughs": (lambda path: with_texts(path, BOMB), DataError, "cannot be read as an Excel file"),
    "a text of a text, often": (lambda path: with_texts(path, QUADRATIC), DataError, "cannot be read as an Excel file"),
    "a text from another file": (lambda path: with_texts(path, OUTSIDE), DataError, "cannot be read as an Excel file"),
    "texts of 100 MB": (lambda path: with_texts(path, b" " * 10**8), MemoryError, "unpacked, needs"),
    "styles of 100 MB": (
        lambda path: with_parts(path, styles=lambda old: old + b" " * 10**8),
        MemoryError,
        "unpacked, needs",
    ),
    "a sheet of 200 MB": (
        lambda path: with_parts(
            path, sheet1=lambda old: old.replace(b"<sheetData>", b" " * (2 * 10**8) + b"<sheetData>")
        ),
        MemoryError,
        "unpacked, needs",
    ),
    "cells far out": (lambda path: with_parts(path, sheet1=far_out), MemoryError, "the table in it, needs"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_S2_S6b_hostile_workbooks_are_refused_quickly(tmp_path, observe, what):
    change, error, says = HOSTILE[what]
    path = book(tmp_path / "x.xlsx", [["a", "b"], [1, "t"], [3, "a"]])
    change(path)
    begin = time.process_time()
    with pytest.raises(error, match=rf"^{path}[,:]? .*{says}") as caught:
        read(path, memory_limit=2**27)
    seconds = time.process_time() - begin
    assert seconds < 3
    assert "\n" not in str(caught.value)
    observe(
        "S6b", f"workbook: {what}", f"{type(caught.value).__name__}: {str(caught.value).replace(str(path), 'x.xlsx')}"
    )


def test_S6b_a_sheet_that_claims_to_be_huge_is_what_it_holds(tmp_path, observe):
    path = book(tmp_path / "x.xlsx", [["a", "b"], [1, 2], [3, 4]])
    with_parts(path, sheet1=lambda old: old.replace(b'ref="A1:B3"', b'ref="A1:XFD1048576"'))
    begin = time.process_time()
    assert whole(read(path)).tolist() == [[1, 2], [3, 4]]
    assert time.process_time() - begin < 1
    observe("S6b", "sheet that claims a million rows of 16384 cells", "read: 2 rows of 2")


def test_S6b_an_empty_cell_in_the_last_row_of_all(tmp_path):
    path = book(tmp_path / "x.xlsx", [["a", "b"], [1, 2], [3, 4]])
    last = b'<row r="1048576"><c r="A1048576"></c></row></sheetData>'
    with_parts(path, sheet1=lambda old: old.replace(b"</sheetData>", last))
    assert whole(read(path)).tolist() == [[1, 2], [3, 4]]


def test_S6b_links_to_other_workbooks_are_not_followed(tmp_path, observe):
    path = book(tmp_path / "x.xlsx", [["a", "b"], [1, "=[1]Sheet1!A1"], [3, 4]])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/externalLinks/externalLink1.xml", b"<externalLink/>")
        target = (
            b'<Relationships><Relationship Id="r1" Target="file:///etc/passwd" TargetMode="External"/></Relationships>'
        )
        archive.writestr("xl/externalLinks/_rels/externalLink1.xml.rels", target)
    assert np.array_equal(whole(read(path)), [[1, np.nan], [3, 4]], equal_nan=True)
    observe("S6b", "link from one workbook to another", "read as a missing cell; nothing is opened")


MEASURE = """
    import sys
    import openpyxl, pyarrow.compute
    from princomp.data import read

    def peak():
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))

    before = peak()
    rows = read(sys.argv[1], memory_limit=2**28)
    print(peak() - before, rows.shape[0])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read from /proc")
def test_S6b_many_texts_are_read_within_the_limit(tmp_path, observe):
    """Short texts, all different, which take the most memory beside their size."""
    n = 100_000
    path = book(tmp_path / "x.xlsx", [["a", "b"], [1, "t"], [3, "a"]])
    texts = b"<sst %s>%s</sst>" % (SPACE, b"".join(b"<si><t>a%d</t></si>" % i for i in range(n)))
    with_texts(path, texts)
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, rows = done.stdout.split()
    assert (rows, int(grown) < 60) == ("2", True)
    observe("S6b", f"workbook: {n} texts, {len(texts) >> 20} MiB", f"read within {grown} MiB")


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.soak)])
def test_S1_flipped_bytes_of_workbooks(tmp_path, observe, count):
    """A damaged workbook is refused, or gives some table; nothing else happens."""
    path = book(tmp_path / "x.xlsx", [["a", "b"], *([i, i % 3] for i in range(20))])
    good, rng, refused = np.frombuffer(path.read_bytes(), np.uint8), np.random.default_rng(0), []
    for _ in range(count):
        bad = good.copy()
        bad[rng.integers(len(bad), size=3)] = rng.integers(256, size=3)
        path.write_bytes(bad[: rng.integers(1, len(bad)) if rng.random() < 0.2 else None].tobytes())
        try:
            whole(read(path, memory_limit=2**28))
        except (DataError, MemoryError) as error:
            refused.append(str(error))
    assert refused
    assert [text for text in refused if not text.startswith(str(path)) or "\n" in text] == []
    observe("S1", f"x.xlsx, damaged in {count} ways", f"refused {len(refused)} times, else read; never a crash")


def test_P9_without_openpyxl_the_line_is_said(tmp_path, observe):
    path = book(tmp_path / "x.xlsx", [["a"], [1]])
    code = "import sys; sys.modules['openpyxl'] = None; from princomp.data import read; read(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    said = done.stderr.splitlines()[-1]
    assert said == 'ImportError: Excel files are read with openpyxl: pip install "princomp[io]"'
    observe("P9", "openpyxl missing", said)
