"""Frames of pandas and polars, by the types and units of datapackage.json."""

import pandas as pd

from .files import ResultsError

FRAMES = ("pandas", "polars")


def units_of(fields):
    """The unit of each column that has one."""
    return {name: field["unit"] for name, field in fields.items() if "unit" in field}


def with_units(frame, fields):
    """The frame, with the units of its columns in `attrs["units"]`."""
    frame.attrs["units"] = {name: unit for name, unit in units_of(fields).items() if name in frame}
    return frame


def to_polars(frame, fields):
    """A frame of polars, which has null for NaN, and whole numbers and flags also where cells are empty."""
    try:
        import polars
    except ImportError:
        raise ResultsError("polars is not installed; install it with `pip install polars`") from None
    types = {"integer": polars.Int64, "number": polars.Float64, "boolean": polars.Boolean}

    def series(name):
        kind, column = types.get(fields[name]["type"], polars.String), frame[name]
        if isinstance(column.dtype, pd.Int64Dtype):
            # Not by way of floats, which round.
            whole = polars.Series(name, column.to_numpy(dtype="int64", na_value=0))
            return whole.set(polars.Series(column.isna().to_numpy()), None)
        if column.dtype.kind in "iufb":
            return polars.Series(name, column.to_numpy(), nan_to_null=True).cast(kind)
        return polars.Series(name, [None if pd.isna(cell) else cell for cell in column], dtype=kind)

    return polars.DataFrame([series(name) for name in frame])
