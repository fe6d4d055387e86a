#!/usr/bin/env python3
"""Opens every kind of file below a folder by programs that others wrote, and compares what they read."""

import json
import math
import pathlib
import re
import subprocess
import sys

import duckdb
import frictionless
import hdrh.histogram
import hdrh.log
import pandas
import PIL.Image
import polars

HERE = pathlib.Path(__file__).parent
# Kinds of files that are text or JSON of a few keys, which other checks read, and the list by which hcabench knows its own
# files.
PLAIN = {".json", ".txt", ".hgrm", ".villas", ".hcabench-files"}


def fail(text):
    """Ends the program with a message."""
    sys.exit(f"ci/readers: {text}")


def run(*command, text=None):
    """What a program printed, which has to end well."""
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
    if ended.returncode or ended.stderr:
        fail(f"{' '.join(map(str, command))}: {ended.stderr.strip() or ended.returncode}")
    return ended.stdout


def of_frame(frame):
    """Rows, columns and the sum of all numbers of a frame of pandas."""
    numbers = frame.select_dtypes("number").to_numpy(dtype=float).ravel()
    return len(frame), len(frame.columns), math.fsum(number for number in numbers if math.isfinite(number))


def by_pandas(files):
    """What pandas reads."""
    return [of_frame(pandas.read_csv(file)) for file in files]


def by_polars(files):
    """What polars reads."""
    return [of_frame(pandas.DataFrame(polars.read_csv(file, infer_schema_length=None).to_dict(as_series=False)))
            for file in files]


def by_duckdb(files):
    """What DuckDB reads."""
    return [of_frame(duckdb.sql(f"select * from read_csv('{file}', sample_size = -1)").df()) for file in files]


def by_readr(files):
    """What readr reads."""
    said = run("Rscript", "--vanilla", HERE / "readers.R", text="".join(f"{file}\n" for file in files))
    rows = [line.split() for line in said.splitlines()]
    return [(int(rows), int(columns), float(total)) for rows, columns, total in rows]


def compare_tables(files):
    """All readers find the same rows, columns and numbers."""
    reference = by_pandas(files)
    for reader in (by_polars, by_duckdb, by_readr):
        name = reader.__name__.removeprefix("by_")
        read = reader(files)
        if len(read) != len(files):
            fail(f"{name} read {len(read)} of {len(files)} files")
        for file, one, other in zip(files, reference, read):
            if one[:2] != other[:2] or not math.isclose(one[2], other[2], rel_tol=1e-9):
                fail(f"{file}: rows, columns and sum are {one} by pandas, and {other} by {name}")
    for name in ("pandas", "polars", "DuckDB", "readr"):
        print(f"{name:14} {len(files):4} files of .csv, {sum(rows for rows, *_ in reference)} rows")


def check_packages(files):
    """The tables are as their package describes them."""
    tables = 0
    for file in files:
        report = frictionless.Package(str(file)).validate()
        if not report.valid:
            fail(f"{file}: {report.flatten(['rowNumber', 'fieldName', 'note'])[:3]}")
        tables += len(report.tasks)
    if not tables:
        fail("no package has a table")
    print(f"{'frictionless':14} {tables:4} tables of {len(files)} packages")


def check_lines(files):
    """DuckDB and polars read lines of JSON."""
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        found = duckdb.sql(f"select type, count(*) from read_json_auto('{file}') group by type").fetchall()
        counts = {kind: sum(line["type"] == kind for line in lines) for kind in {line["type"] for line in lines}}
        if dict(found) != counts or polars.read_ndjson(file, infer_schema_length=None).height != len(lines):
            fail(f"{file}: DuckDB or polars read other lines than are there: {found}")
    for name in ("DuckDB", "polars"):
        print(f"{name:14} {len(files):4} files of .jsonl")


def check_images(files):
    """Pillow decodes all pixels."""
    for file in files:
        with PIL.Image.open(file) as image:
            image.load()
            if image.getextrema()[0][0] == image.getextrema()[0][1]:
                fail(f"{file}: it has one colour")
    print(f"{'Pillow':14} {len(files):4} files of .png")


def checked_by(name, *command):
    """A check by a program that is silent, or prints what does not matter, if all is well."""
    def check(files):
        for file in files:
            run(*command, file)
        print(f"{name:14} {len(files):4} files of {files[0].suffix}")
    return check


READERS = {
    ".csv": compare_tables,
    ".jsonl": check_lines,
    ".png": check_images,
    ".svg": checked_by("xmllint", "xmllint", "--noout", "--nonet"),
    ".pdf": checked_by("qpdf", "qpdf", "--check"),
}


def check_pages(files):
    """xmllint parses HTML; it does not know the elements of HTML 5."""
    for file in files:
        ended = subprocess.run(["xmllint", "--html", "--noout", "--nonet", file], capture_output=True, text=True,
                               check=False, timeout=120)
        faults = [line for line in ended.stderr.splitlines() if "error :" in line and "Tag " not in line]
        if faults:
            fail(f"{file}: {faults[0]}")
    print(f"{'xmllint':14} {len(files):4} files of .html")


# The comment before the intervals of a round, with how many samples these have.
ROUND_OF_LOG = re.compile(r"#\[Round: \d+, (\d+) intervals of [\d.]+ s, (\d+) samples, \d+ below zero, \d+ not kept\]")


def check_logs(files):
    """HdrHistogram reads as many intervals and samples from logs as the comments before the rounds state."""
    rounds = samples = 0
    for file in files:
        heads = [line for line in file.read_text().splitlines() if line.startswith("#[Round: ")]
        stated = [ROUND_OF_LOG.fullmatch(head) for head in heads]
        if not stated or None in stated:
            fail(f"{file}: the comments before its rounds are {heads}")
        reader = hdrh.log.HistogramLogReader(str(file), hdrh.histogram.HdrHistogram(1, 2**62, 3))
        counts = []
        while (interval := reader.get_next_interval_histogram()) is not None:
            counts.append(interval.get_total_count())
        reader.close()
        wanted = [sum(int(head[group]) for head in stated) for group in (1, 2)]
        if [len(counts), sum(counts)] != wanted:
            fail(f"{file}: {wanted} intervals and samples by its comments, {[len(counts), sum(counts)]} by HdrHistogram")
        rounds, samples = rounds + len(stated), samples + sum(counts)
    # A log of jumps may have none; not all logs do.
    if not samples:
        fail("no log has a sample")
    print(f"{'HdrHistogram':14} {len(files):4} files of .hlog, {rounds} rounds, {samples} samples")


READERS |= {".html": check_pages, ".hlog": check_logs}


def main(folder):
    """Reads all."""
    kinds = {}
    for file in sorted(pathlib.Path(folder).rglob("*")):
        if file.is_file():
            kinds.setdefault(file.suffix or file.name, []).append(file)
    if unknown := sorted(set(kinds) - set(READERS) - PLAIN):
        fail(f"no reader for {', '.join(map(repr, unknown))}, as {kinds[unknown[0]][0]}")
    for kind, reader in READERS.items():
        if kind in kinds:
            reader(kinds[kind])
        else:
            fail(f"there is no file of {kind}")
    check_packages([file for file in kinds[".json"] if file.name == "datapackage.json"])
    for file in kinds[".json"]:
        json.loads(file.read_text())
    print(f"{'json':14} {len(kinds['.json']):4} files of .json")


if __name__ == "__main__":
    main(sys.argv[1])
