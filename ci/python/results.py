"""Reads results of hcabench, for all scripts of this folder."""

import csv
import json
import statistics
import sys
from pathlib import Path

median = statistics.median


def rows(path):
    """The rows of a CSV file, each a dictionary of texts."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def first(path):
    """The first row of a CSV file."""
    found = rows(path)
    if not found:
        raise ValueError(f"{path}: there is no row")
    return found[0]


def write(path, changed):
    """Writes rows as a CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, changed[0])
        writer.writeheader()
        writer.writerows(changed)


def document(path):
    """What a JSON file contains."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def values(text):
    """What a program in C or the peer prints: lines such as `received=2000`."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def time_us(row, column, counted, messages):
    """A time in us, if as many messages arrived as were sent."""
    if row.get(counted) != str(messages):
        sys.exit(f"not all messages arrived: {counted} is {row.get(counted)}, not {messages}")
    return float(row[column]) / 1000


def boot_ids(hosts, count=2):
    """The boot ids of hosts, which must be as many kernels."""
    ids = sorted({host["boot_id"] or "" for host in hosts})
    if len(hosts) != count or len(ids) != count or not all(ids):
        raise ValueError(f"not {count} hosts with a boot id each: {ids}")
    return ids
