"""Settings and quantities as text."""

import pandas as pd


def in_words(name, value):
    """A setting as a reader would say it: `size_bytes` 4096 is `4 KiB`."""
    if name in ("size_bytes", "payload_bytes", "sample_bytes"):
        return bytes_in_words(value)
    if name == "rate_per_s":
        return f"{rate_in_words(value)}/s"
    if name in ("service", "queue", "operation", "type", "scenario"):
        return str(value)
    if name == "inline":
        return "inline" if value == "on" else "not inline"
    if name.endswith("_ns"):
        return f"{name[:-3].replace('_', ' ')} {value:g} ns"
    if name == "percent_of_saturation":
        return f"{value:g} % of saturation"
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return f"{name.replace('_', ' ')} {value}"


def label(point, names):
    """What tells a point from the others, by the settings that vary."""
    words = [in_words(name, getattr(point, name)) for name in names if not pd.isna(getattr(point, name))]
    return ", ".join(words) or "all"


def bytes_in_words(count):
    """4096 is `4 KiB`."""
    count = int(count)
    for size, unit in ((2**20, "MiB"), (2**10, "KiB")):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} B"


def rate_in_words(rate):
    """250000 is `250k`."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= unit:
            return f"{rate / unit:.3g}{name}"
    return f"{rate:.3g}"
