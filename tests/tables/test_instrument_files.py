"""Files as instruments, loggers, spreadsheets and plotting programs write them: read, or the way on is said.

The files stand in `instruments/`. Whoever reads one, in memory, by rows, in another process or in Python,
reads the same numbers.
"""

from __future__ import annotations

import json
import pickle
import shutil
import warnings
from pathlib import Path

import pytest

import gradcli
from gradcli.tables import TableError
from gradcli.tables.parts import Parts
from gradcli.tables.reading_options import Reading
from tests.commands.running import outcome as run

FILES = Path(__file__).parent / "instruments"

# (file, column, its numbers, what the note says; "" for no note)
READ: list[tuple[str, str, list[float], str]] = [
    (
        "rigol.csv",
        "CH1",
        [0.12, 0.14, 0.16, 0.2],
        "X begins at -0.006 s, with steps of 2e-05 s",
    ),
    ("tektronix_tds.csv", "5", [0.12, 0.16, 0.2, 0.24, 0.2, 0.16], ""),
    ("tektronix_dpo.csv", "CH1", [0.12, 0.16, 0.24, 0.2], "9 lines of preamble, names in line 12"),
    ("keysight_dsox.csv", "1", [0.125, 0.15, 0.2], "units in line 2 (second, Volt, Volt)"),
    ("keysight_infiniium.csv", "2", [0.011, 0.013, 0.019, 0.023], "9 lines of preamble"),
    (
        "keysight_vna.csv",
        "S11 Log Mag(dB)",
        [-12.5, -13.5, -15.5],
        "1 line below the table left out",
    ),
    ("rohde_schwarz.csv", "$2", [-71.5, -70.25, -12.75, -70.5], "10 lines of preamble"),
    ("picoscope.csv", "Channel B", [2.1, 2.4, 3.3], "units in line 2 (ms, V, mV)"),
    (
        "picoscope_german.txt",
        "Kanal B",
        [2.1, 2.4, 3.3],
        "units in line 2 (ms, V, µA), decimal commas",
    ),
    ("ltspice.txt", "V(out)", [0, 0.1, 0.25], ""),
    ("gnuplot.dat", "U", [1, 0.5, 0.25], "1 remark before the names, names in line 2 (t, U)"),
    ("gnuplot_sets.dat", "y", [0, 1, 4, 1, 2, 5], "--block N takes one"),
    ("gnuplot_bare.dat", "2", [1, 1.5, 3], ""),
    ("numpy_savetxt.txt", "U", [1, 0.5, 0.25], "names in line 1 (t, U)"),
    ("matlab_comment.txt", "U", [1, 0.5, 0.25], "names in line 2 (t, U)"),
    (
        "labview.lvm",
        "Voltage",
        [1.25, 1.5, 2],
        "names in line 22 (X_Value, Voltage, Current, Comment)",
    ),
    ("campbell_toa5.dat", "BattV_Min", [12.6, 12.5, 12.5, 12.4], "units in line 3"),
    (
        "campbell_toa5.dat",
        "TIMESTAMP",
        [0, 600, 1200, 1800],
        "TIMESTAMP is seconds since 2024-03-01 00:00:00",
    ),
    ("origin.txt", "Signal", [1.5, 2.5, 4.5], "units in line 2 (s, mV), line 3 skipped"),
    (
        "ocean_optics.txt",
        "2",
        [12.5, 13.5, 18, 12],
        "1 line below the table left out, from line 15",
    ),
    ("panalytical.csv", "Intensity", [253, 249, 263, 240], "11 lines of preamble"),
    ("ec_lab.mpt", "Ewe/V", [0.321, 0.322, 0.323], "not UTF-8: read as Latin-1"),
    ("nist_strd.dat", "y", [10.07, 14.73, 17.94, 23.93], "names in line 22 (y, x)"),
    ("usgs.rdb", "discharge", [12300, 11800, 11200], "line 6 skipped"),
    ("astropy.ecsv", "flux", [1.5, 1.25, 1.125], ""),
    ("gromacs.xvg", "Pressure", [-2.5, 4.5, 1.25], "names by the lines that begin with @"),
    ("r_write_table.txt", "dist", [2, 10, 4, 22], ""),
    ("excel_german.csv", "Leistung", [1250.5, 1300.25, 1410.75], "`.` between thousands"),
    ("excel_french.csv", "Énergie (J)", [1250.5, 1300.25, 1410.75], "`blank` between thousands"),
    ("excel_unicode.txt", "U", [1.5, 1.75, 2.25], ""),
    ("excel_english.csv", "revenue", [1250.5, 1300.25, 1410.75], "`,` between thousands"),
    ("logger.jsonl", "temp", [21.5, 21.75, 22.25], ""),
    ("logger.jsonl", "time", [0, 60, 180], "time is seconds since 2024-03-05T10:00:00Z"),
    ("fortran.dat", "ENERGY", [-0.0025, -1.25e-103, 0.5], ""),
    ("dates_iso.csv", "when", [0, 30.5, 60], "when is seconds since 2024-03-05T10:00:00"),
    ("dates_german.csv", "Datum", [0, 1, 3], "Datum is days since 01.02.2026, day first"),
    ("clock.txt", "time", [0, 0.5, 3], "time is seconds since 12:30:01.5"),
    ("date_and_time.txt", "when", [0, 1800, 3600], "a date and its time are one column"),
    ("colours.csv", "x", [1, 2, 4], ""),
    ("hash_names.csv", "#", [1, 2, 3], ""),
    ("runs.csv", "Run #", [1, 2, 3], ""),
    ("markdown.txt", "U", [1.5, 1.75, 2.25], ""),
    ("title.csv", "V", [1, 2, 4], "1 line of preamble, names in line 3"),
    (
        "pump.log",
        "p",
        [1013.25, 1012.75, 1010.25],
        "2 lines of preamble, names in line 3 (t, p, T)",
    ),
    ("avantes.ttt", "Sample", [800.25, 805.25, 810.25, 815.25], "zero bytes at the ends of lines"),
    (
        "jaz.txt",
        "P",
        [0.125, 1.125, 4.125, 9.125],
        "10 lines below the table left out, from line 11",
    ),
    ("autolab.txt", "Freq (Hz)", [10000, 1000, 100, 10], "names in line 4 (Freq (Hz), Ampl, Bias"),
    ("rigol.csv", "X", [-0.006, -0.00598, -0.00596, -0.00594], "units in line 2 (s, Volt, Volt)"),
    ("rigol_ds1000z.csv", "CH1", [10, 11, 12, 13], "X begins at -0.0012 s"),
    ("rigol_ds1000z.csv", "X", [-0.0012, -0.001198, -0.001196, -0.001194], "steps of 2e-06 s"),
    ("rigol_mso5000.csv", "Time(s)", [-0.006, -0.00598, -0.00596], ""),
    ("rigol_dho.csv", "Time(s)", [-0.006, -0.00598, -0.00596], "Time(s) begins at -0.006 s"),
    ("rigol_dho.csv", "CH2V", [2, 3, 2.5], "steps of 2e-05 s"),
    ("gamry_eis.dta", "Zimag", [-0.5, -8.25, -75.5], "units in line 7"),
    ("root_scan.txt", "mass", [90.5, 91.5, 92.5], "2 lines below the table left out, from line 9"),
    ("root_pause.txt", "mass", [90.5, 91.25, 92], "names in line 2 (Row, Instance, mass)"),
    ("mysql.txt", "mass", [92.57, 87.3, 88.3], "1 line below the table left out, from line 8"),
    ("duckdb.txt", "mass", [92.57, 87.3, 88.3], "names in line 2 (id, mass, pt)"),
    ("polars.txt", "mass", [92.57, 87.3, 88.3], "names in line 3 (id, mass, pt)"),
    ("docutils.txt", "mass", [92.57, 87.3, 88.3], "1 line below the table left out, from line 7"),
    ("docutils_grid.txt", "mass", [92.57, 87.3, 88.3], "names in line 2 (id, mass, pt)"),
    # MAESTRO's manual, appendix A; Amptek's DPPMCA; the schema of XRDML 1.5.
    ("maestro.spe", "counts", [28, 42, 35, 31], "live time 600 s, real time 612 s"),
    ("maestro.spe", "channel", [10, 11, 12, 13], "units in line 2 (keV)"),
    ("maestro.spe", "energy", [670, 682.5, 696, 710.5], "units in line 2 (keV)"),
    ("amptek.mca", "counts", [0, 1, 5, 2], "live time 60.1 s, real time 61.2 s"),
    ("amptek_energies.mca", "energy", [1.5, 2.5, 3.5], "energy by the line through 2 points"),
    ("amptek_keV.mca", "energy", [-0.5, 0.5, 1.5], "units in line 2 (keV)"),
    ("silicon.xrdml", "2Theta", [27, 27.02, 27.04, 27.06], "counting time 0.5 s a point"),
    ("silicon.xrdml", "Omega", [13.5, 13.51, 13.52, 13.53], "units in line 2 (deg, deg, counts)"),
    ("silicon.xrdml", "intensities", [253, 249, 2630, 240], "counting time 0.5 s a point"),
    (
        "flow.csv",
        "flow",
        [15, 15.1, 15.2, 15.3],
        "names in line 1 (uts, flow, T, p), units in line 2",
    ),
    ("microscope.txt", "2", [13.5, 12.5, 11.5, 10.5], "3 lines of preamble"),
    # As SPEC writes them (certif.com, `scans`), Sea-Bird's SBE Data Processing, and JCAMP-DX 4.24 and 5.
    ("one_scan.spec", "Detector", [12, 15, 11], ""),
    ("cast.cnv", "t090C [ITS-90, deg C]", [15.8635, 15.4798, 15.25, -10.2516], ""),
    (
        "infrared.jdx",
        "y [ABSORBANCE]",
        [0.1, 0.115, 0.13, 0.118, 0.118, 0.138, 0.12, 0.1, 0.095, -0.005],
        "",
    ),
    ("infrared.jdx", "x [1/CM]", [400 + k for k in range(10)], ""),
    ("electrons.xy", "counts/s", [8974.5, 8422.25, 8500], "names in line 8 (energy, counts/s"),
    ("peaks.jdx", "y [RELATIVE ABUNDANCE]", [150, 999, 440], ""),
]

# (file, column, what is asked or wrong, the options that the hint names, what they make of it)
ASKED: list[tuple[str, str, str, list[str], list[float]]] = [
    (
        "decimal_commas.txt",
        "1",
        "`0,5`: two columns, or one with decimal commas?",
        ["--decimal", ","],
        [0.5, 1.25, 2],
    ),
    (
        "decimal_commas.txt",
        "1",
        "`0,5`: two columns, or one with decimal commas?",
        ["--separator", ","],
        [0, 1, 2],
    ),
    (
        "google_sheets.csv",
        "cost",
        "`1,000`: a decimal comma, or a mark",
        ["--thousands", ","],
        [1000, 2500, 4750],
    ),
    (
        "google_sheets.csv",
        "cost",
        "`1,000`: a decimal comma, or a mark",
        ["--decimal", ","],
        [1, 2.5, 4.75],
    ),
    (
        "dates_american.csv",
        "day",
        "`01/02/2026`: the day first, or the month?",
        ["--date-order", "mdy"],
        [0, 1, 3],
    ),
    (
        "multimeter.csv",
        "Value",
        "`OL` is not a number",
        ["--missing-markers", "OL", "--missing", "skip"],
        [1.25, 1.375, 1.625],
    ),
    (
        "ltspice_steps.txt",
        "V(out)",
        "line 5: 1 value, and line 1 has 2",
        ["--comment", "S"],
        [0, 0.1, 0, 0.05],
    ),
    (
        "gamry.dta",
        "Vf",
        "line 11: 4 values, and line 5 has 5",
        ["--skip-footer", "9"],
        [-0.30, -0.31, -0.32, -0.33],
    ),
    ("gnuplot_bare.dat", "U", "has no names of columns", ["--names", "t,U"], [1, 1.5, 3]),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def here(name: str) -> str:
    shutil.copy(FILES / name, name)
    return name


def quoted(column: str) -> str:
    return column if column.lstrip("$").isdigit() else f'"{column}"'


def numbers(text: str) -> list[float]:
    return [float(cell) for cell in text.strip().strip("[]").split(", ")]


@pytest.mark.parametrize(
    "name, column, expected, words", READ, ids=[f"{r[0]}:{r[1]}" for r in READ]
)
def test_read_by_everyone_alike(name: str, column: str, expected: list[float], words: str) -> None:
    reference = f"@{here(name)}:{quoted(column)}"
    code, out, err = run("eval", "1*x", "--x", reference)
    assert (code, numbers(out)) == (0, expected), err
    assert words in err and bool(words) == bool(err)
    total = sum(expected)
    code, out, err = run("eval", "sum(x)", "--x", reference, "--by-rows")
    assert code == 0 and float(out) == pytest.approx(total, rel=1e-15), err
    assert words in err
    line = ["map", "1*x", name, "--columns", f"x={quoted(column)}", "--keep-columns", "none"]
    code, out, err = run(*line, "--no-grad", "all", "--missing", "nan")
    assert code == 0 and [float(cell) for cell in out.split()[1:]] == expected, err
    assert words in err
    Path("program.txt").write_text("print((1*x).tolist())")
    code, out, err = run("run", "program.txt", "--x", reference)
    assert (code, numbers(out)) == (0, expected) and words in err, err
    parts = Parts(name, Reading())
    (part,) = pickle.loads(pickle.dumps(parts.parts))  # as a worker gets it
    place = parts.names.index(column.lstrip("$"))
    found = [x for batch in part.batches([]) for x in batch.numbers(place).numbers.tolist()]
    assert found == expected
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        (array,) = gradcli.read_table(name, quoted(column)).values()
    assert array.tolist() == expected
    assert any(words in str(one.message) for one in said) or not words


@pytest.mark.long
@pytest.mark.parametrize(
    "name, column, expected, words", READ, ids=[f"{r[0]}:{r[1]}" for r in READ]
)
def test_fit_check_and_plot_read_it_as_well(
    name: str, column: str, expected: list[float], words: str
) -> None:
    """The mean of a column is its least squares; the gradient of a square is checked at its numbers; and a
    plot has them as its points."""
    here(name)
    mean = sum(expected) / len(expected)
    line = ["fit", "x == m", name, "--columns", f"x={quoted(column)}", "--m", repr(mean or 1.0)]
    code, out, err = run(*line, "--missing", "skip", "--json")
    assert code == 0, err
    assert json.loads(out)["parameters"]["m"]["value"] == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert words in err
    code, out, err = run("check", "x**2", "--x", f"@{name}:{quoted(column)}")
    assert code == 0 and words in err, err
    if column.isidentifier():
        code, out, err = run("plot", column, name, "--missing", "skip", "--over", column, "--csv")
        assert code == 0 and words in err, err
        found = sorted(float(row.split(",")[-1]) for row in out.splitlines()[1:])
        assert found == pytest.approx(sorted(expected), rel=1e-12)


@pytest.mark.parametrize("name, column, words, options, expected", ASKED)
def test_asked_and_answered(
    name: str, column: str, words: str, options: list[str], expected: list[float]
) -> None:
    reference = f"@{here(name)}:{quoted(column)}"
    mapped = ["map", "1*x", name, "--columns", f"x={quoted(column)}", "--no-grad", "all"]
    for line in (["eval", "1*x", "--x", reference], [*mapped, "--keep-columns", "none"]):
        for more in ([], ["--by-rows"]) if line[0] == "eval" else ([],):
            code, out, err = run(*line, *more)
            assert code in (1, 2) and words in err, (line, err)
            assert options[0] in err, "the option that decides is named"
        code, out, err = run(*line, *options)
        assert code == 0, err
        found = [float(c) for c in out.split()[1:]] if line[0] == "map" else numbers(out)
        assert found == expected


def test_what_was_decided_stands_in_json() -> None:
    code, out, _ = run(
        "grad", "sum(x)", "--x", f"@{here('picoscope_german.txt')}:Kanal A", "--json"
    )
    found = json.loads(out)["read"]["picoscope_german.txt"]
    assert code == 0
    assert (found["names_line"], found["units_line"], found["first_row_line"]) == (1, 2, 4)
    assert (found["separator"], found["decimal"]) == ("tab", ",")
    assert found["units"] == {"Zeit": "ms", "Kanal A": "V", "Kanal B": "µA"}
    code, out, _ = run("eval", "x", "--x", "1", "--json")
    assert "read" not in json.loads(out)


def test_another_table_below_is_read_where_that_is_asked_for() -> None:
    code, _, err = run("eval", "1*x", "--x", f"@{here('gamry.dta')}:Freq")
    assert code == 2 and "another table is below, with rows from line 16: --skip-lines 10" in err
    for more in ([], ["--by-rows"]):
        code, out, err = run(
            "eval", "sum(x)", "--x", "@gamry.dta:Freq", "--skip-lines", "10", *more
        )
        assert (code, out) == (0, "111100\n"), err


def test_amplitude_and_phase_are_no_numbers() -> None:
    code, _, err = run("eval", "x", "--x", f"@{here('ltspice_ac.txt')}:V(out)")
    assert code == 2 and "real and imaginary" in err


def test_a_file_that_nobody_reads_is_not_guessed() -> None:
    Path("noise.dat").write_bytes(bytes(range(256)) * 40)
    with pytest.raises(TableError, match="not a text"):
        Parts("noise.dat", Reading())


def test_a_table_in_a_frame_keeps_its_lines() -> None:
    """--skip-lines and --skip-footer count the lines of the file, and an error names one of them."""
    reference = f"@{here('root_scan.txt')}:2"
    for options, expected in (
        (["--skip-lines", "4"], "[90.5, 91.5, 92.5]\n"),
        (["--skip-footer", "2"], "[90.5, 91.5, 92.5]\n"),
        (["--skip-footer", "4"], "[90.5, 91.5]\n"),
    ):
        assert run("eval", "m", "--m", reference, *options)[1] == expected
    Path("bad.txt").write_text(Path("root_scan.txt").read_text().replace("91.50000", "9l.50000"))
    code, _, err = run("eval", "m", "--m", "@bad.txt:mass")
    assert code == 2 and "bad.txt, line 6, column mass: `9l.50000` is not a number" in err


def test_counts_of_an_analyser_that_are_cut_off() -> None:
    text = (FILES / "maestro.spe").read_text().replace("       35\n", "")
    Path("bad.spe").write_text(text)
    code, _, err = run("eval", "m", "--m", "@bad.spe:counts")
    assert code == 2 and "bad.spe: $DATA: has 3 channels, and says 10 to 13" in err


def test_counts_behind_an_attenuator() -> None:
    """XRDML 2: counts are as they were detected, so that the factors come in; intensities have them."""
    text = (FILES / "silicon.xrdml").read_text()
    Path("raw.xrdml").write_text(
        text.replace("<intensities", "<counts")
        .replace("/intens", "/count")
        .replace("countities", "counts")
    )
    assert run("eval", "1*m", "--m", "@raw.xrdml:counts")[1] == "[253, 249, 26300, 240]\n"


def test_one_of_several_scans() -> None:
    code, _, err = run("eval", "x", "--x", f"@{here('scans.spec')}:Detector")
    assert code == 2 and "scans.spec has 2 tables" in err and "one of 1, 2" in err
    assert run("eval", "1*x", "--x", "@scans.spec:1:Detector")[1] == "[120, 480, 130]\n"
    assert (
        run("map", "Detector", "scans.spec:2", "--no-grad", "all")[1].splitlines()[1]
        == "1,0.5,1,7,7"
    )


def test_a_bad_flag_is_missing() -> None:
    reference = f"@{here('cast.cnv')}:sal00"
    code, _, err = run("eval", "mean(x)", "--x", reference)
    assert code == 2 and "a number is missing" in err
    code, out, _ = run("eval", "1*x", "--x", reference, "--missing", "skip")
    assert numbers(out) == [35.7561, 35.7, 35.65]


DAMAGED = [
    ("A18K0S", "A19K0S", "begins with 119, and the one before ends with 118"),
    ("j8A00", "j8A00A00", "XYDATA has 11 points, and NPOINTS says 10"),
    ("##LASTX= 409", "##LASTX= 459", "and at 426.222 by FIRSTX and LASTX"),
]


@pytest.mark.parametrize(("there", "then", "words"), DAMAGED)
def test_a_damaged_spectrum_is_refused(there: str, then: str, words: str) -> None:
    text = (FILES / "infrared.jdx").read_text("utf-8").replace(there, then)
    Path("damaged.jdx").write_text(text, "utf-8")
    code, _, err = run("eval", "sum(y)", "--y", "@damaged.jdx:2")
    assert code == 2 and words in err
