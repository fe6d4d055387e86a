"""Reads single files of a results folder, and names what is wrong with one."""

import io
import json
import os
import warnings
from pathlib import Path

import pandas as pd

# Is in the folder of a run that is not complete.
MARK = "INCOMPLETE"
PACKAGE = "datapackage.json"


class ResultsError(Exception):
    """A folder that cannot be read as results, with what to do about it."""


def table(path, columns=None, fields=None):
    """A CSV file; with `columns`, only those, in this order; with `fields` of datapackage.json, columns have its types.

    Only an empty cell is NaN: `NA` and `null` are texts. A whole number stays exact: a column of them with empty cells
    is `Int64`, by the types of `fields`; without `fields` it is `float64`, which is exact to 2**53.

    A last row that was not written to its end is an error; of an incomplete run it is left out, with a warning.
    """
    path = Path(path)
    try:
        check_text(path)
        text = None
        if _is_cut(path):
            if not any((folder / MARK).exists() for folder in path.parents[:2]):
                raise ResultsError(f"{path}: its last row is cut off; copy the file again from where it was measured")
            text = path.read_bytes()
            text = text[: text.rfind(b"\n") + 1]
            warnings.warn(f"{path}: its last row is cut off and left out, the run is incomplete", stacklevel=2)
        read = _typed(lambda: path if text is None else io.BytesIO(text), columns, fields or {})
    except FileNotFoundError:
        raise ResultsError(missing(path)) from None
    except (TypeError, ValueError, pd.errors.ParserError) as error:
        raise ResultsError(f"{path}: {error}") from error
    return read if columns is None else read[list(columns)]


TYPES = {"string": str, "number": float}


def _typed(source, columns, fields):
    """The file that `source` opens, with the types of its fields as far as they are known."""
    options = {"encoding": "utf-8-sig", "keep_default_na": False, "na_values": [""]}
    types = {name: TYPES[field["type"]] for name, field in fields.items() if field["type"] in TYPES}
    read = pd.read_csv(source(), usecols=columns, dtype=types, **options)
    # Integers with empty cells are float64 now. Only these are read again, as reading Int64 takes far longer.
    rounded = [name for name in read if fields.get(name, {}).get("type") == "integer" and read[name].dtype.kind not in "iu"]
    if rounded:
        exact = pd.read_csv(source(), usecols=rounded, dtype="Int64", **options)
        read = read.assign(**{name: exact[name] for name in rounded})
    return read


def document(path):
    try:
        check_text(path)
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ResultsError(missing(path)) from None
    except ValueError as error:
        raise ResultsError(f"{path}: not JSON, or not all of it: {error}") from error


def described(path):
    """The columns of each CSV file of a run by name, by the path of the file, as the datapackage.json of its folder has them."""
    return {
        resource["path"]: {column["name"]: column for column in resource["schema"]["fields"]}
        for resource in document(path / PACKAGE)["resources"]
        if "schema" in resource
    }


PACKED = {b"\x1f\x8b": ("gzip", "gunzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", "unzstd", ".zst"), b"\xfd7zXZ": ("xz", "unxz", ".xz")}


def missing(path):
    """What is said of a file that is not there."""
    for _, unpack, ending in PACKED.values():
        if Path(f"{path}{ending}").exists():
            return f"{path}: {Path(path).name}{ending} is there in its place; unpack it with {unpack}"
    return f"{path}: there is no such file; is the folder that of a whole run?"


def check_text(path):
    """Refuses a file that is not text in UTF-8 with commas, with the cause; as the reader of hcabench does."""
    path = Path(path)
    with open(path, "rb") as file:
        first = file.readline(1 << 16)
    for begins, (by, unpack, _) in PACKED.items():
        if first.startswith(begins):
            raise ResultsError(f"{path}: is compressed with {by}; unpack it with {unpack}, and give it its name again")
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ResultsError(f"{path}: is text in UTF-16; save it as UTF-8")
    if path.suffix == ".csv":
        if not first.strip():
            raise ResultsError(f"{path}: is empty")
        for separator, name in ((b";", "semicolons"), (b"\t", "tabs")):
            if b"," not in first and separator in first:
                raise ResultsError(f"{path}: its cells are separated by {name}; save it with commas")


def _is_cut(path):
    """Whether a file of lines ends within one."""
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
