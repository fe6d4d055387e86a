"""The figures of the method, by matplotlib: histogram, medians with bars, surface, percentiles.

Colours are those of Okabe and Ito, which stay apart for the colour-blind; line styles and markers say the same a second
time. They are given out in the order in which series are drawn.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from .distribution import Distribution

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C8C00"]
LINES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (3, 1))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
# The range that all histograms of the method have, so that they can be compared at a glance.
USUAL_RANGE_NS = (0, 10_000)

STYLE = {
    "figure.dpi": 110, "figure.constrained_layout.use": True, "axes.grid": True, "grid.alpha": 0.3,
    "axes.axisbelow": True, "font.size": 9, "axes.titlesize": 11, "legend.fontsize": 8, "legend.framealpha": 0.9,
}


def set_style():
    """Makes this style matplotlib's default."""
    plt.rcParams.update(STYLE)


def style(number):
    """Colour, line style and marker of a series by its number."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": LINES[number % len(LINES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def titles(figure, title, subtitle):
    """Title, and below it in small what all points share."""
    lines = _wrapped(subtitle, int(figure.get_figwidth() * 15)) if subtitle else []
    # The layout makes room for the small text; its first two lines are empty, and the title stands in their place.
    figure.suptitle("\n".join(["", "", *lines]), fontsize=7.5, color="0.35")
    figure.text(0.5, 0.985, title, ha="center", va="top", fontsize=12, fontweight="bold")


def number_in_words(value, digits=4):
    """So many digits, more where they stand before the point, and never an exponent: `1,262`, `29.51`."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.{digits}g}'):g}"


def histogram(series, title, subtitle="", range_ns=None, what="latency", log=False, bins=200, missing="lost"):
    """Series over each other: {label: samples in ns, or (values in ns, counts), or a Distribution}.

    Shares are those of the samples that there are; the legend counts those that are NaN, as `missing`.

    The range is a pair, or "auto": to the highest 95th percentile and half as much again. Without one it is the usual
    range, unless more than nine tenths of the samples lie beyond: then "auto". The box names what is not in the picture;
    lines stand at the medians.
    """
    weighted = {name: _weighted(samples) for name, samples in series.items()}
    low, high = _range_of(weighted, range_ns) if range_ns in (None, "auto") else range_ns
    unit, name_of_unit = (1000, "µs") if high > 20_000 else (1, "ns")
    figure, axes = plt.subplots(figsize=(8, 4.2))
    edges = np.linspace(low, high, bins + 1)
    box = []
    for number, (name, (values, counts, absent)) in enumerate(weighted.items()):
        look = style(number)
        total = counts.sum()
        if not total:
            axes.plot([], color=look["color"], linestyle=look["linestyle"], label=_without_samples(name, absent, missing))
            continue
        if isinstance(series[name], Distribution):
            heights = np.diff(series[name].below(edges))
        else:
            heights, _ = np.histogram(values, edges, weights=counts)
        share = 100 * heights / total
        axes.stairs(share, edges / unit, fill=True, color=look["color"], alpha=0.25)
        median = median_of(values, counts)
        axes.stairs(share, edges / unit, color=look["color"], linewidth=1)
        # A median beyond the picture has a line in the legend only.
        axes.axvline(median / unit, color=look["color"], linestyle=look["linestyle"], linewidth=1.6,
                     label=f"{name}: median {number_in_words(median / unit)} {name_of_unit}{_and_absent(absent, missing)}")
        above = 100 * counts[values > high].sum() / total
        box.append(f"{name}: {above:.3g} %, max {number_in_words(values.max() / unit)} {name_of_unit}")
    above = f"above {number_in_words(high / unit)} {name_of_unit}\n" + "\n".join(box)
    axes.text(0.985, 0.96, above if box else "no samples", transform=axes.transAxes,
              ha="right", va="top", fontsize=8, bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "0.5"})
    axes.set(xlabel=f"{what} [{name_of_unit}]", ylabel=f"samples [% a bin of {(high - low) / bins / unit:.3g} {name_of_unit}]",
             xlim=(low / unit, high / unit))
    if log:
        axes.set_yscale("log")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=3)
    titles(figure, title, subtitle)
    return figure


def medians(table, x, lines, title, subtitle="", y="p50", low="p10", high="p90", x_label="", y_label="", panel=None,
            x_words=None, panel_words=str):
    """Medians over `x` with bars from `low` to `high`: a line for each value of the column `lines`, a panel for each of
    the column `panel`."""
    table = _in_floats(table)
    panels = [(None, table)] if panel is None else list(table.groupby(panel, sort=True))
    figure, grid = plt.subplots(1, len(panels), figsize=(max(7, 3.7 * len(panels)), 4.3), sharey=True, squeeze=False)
    names = list(dict.fromkeys(table[lines]))
    ticks = sorted(table[x].unique())
    for axes, (value, part) in zip(grid[0], panels):
        for number, name in enumerate(names):
            line = part[part[lines] == name].sort_values(x)
            if line.empty:
                continue
            # A little beside each other, so that bars do not cover bars.
            beside = 1.035 ** (number - (len(names) - 1) / 2)
            axes.errorbar(line[x] * beside, line[y], yerr=[line[y] - line[low], line[high] - line[y]], label=name,
                          capsize=2.5, markersize=4, linewidth=1.1, elinewidth=0.9, **style(number))
        axes.set_xscale("log", base=2)
        words = [x_words(tick) if x_words else f"{tick:g}" for tick in ticks]
        axes.set_xticks(ticks, _apart(np.log2(ticks), words, 24),
                        rotation=45 if len(ticks) > 4 else 0)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.minorticks_off()
        axes.set_xlabel(x_label)
        if value is not None:
            axes.set_title(panel_words(value))
    log_if_wide(grid[0][0], table[[low, high]])
    grid[0][0].set_ylabel(y_label)
    handles = {}
    for axes in grid[0]:
        handles |= {name: handle for handle, name in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(len(names), 6))
    titles(figure, title, subtitle)
    return figure


def surface(table, x, y, z, colour, title, subtitle="", x_label="", y_label="", z_label="", colour_label="",
            x_words=str, y_words=str, panel=None, log_x=True, log_y=True):
    """`z` over two settings as a surface, the mean of `colour` at a face's corners as its colour.

    Where a pair of settings has no value there is a hole, and the panel's title counts them. A panel that has no face
    is left out and named in the subtitle; without any panel there is no figure.
    """
    table = _in_floats(table)
    panels = [("", table)] if panel is None else list(table.groupby(panel, sort=False))
    shown, flat = [], []
    for name, part in panels:
        heights = heights_of(part, x, y, z)
        if has_a_face(heights):
            colours = part.pivot_table(index=y, columns=x, values=colour, aggfunc="mean").reindex_like(heights)
            shown.append((name, heights, colours.where(heights.notna())))
        else:
            flat.append(str(name) or "all")
    if not shown:
        return None
    if flat:
        subtitle = ", ".join([part for part in (subtitle,) if part] + [f"too few values for a surface: {'; '.join(flat)}"])
    highest = max(float(np.nanmax(colours.to_numpy())) for _, _, colours in shown)
    norm, map_of_colours = Normalize(0, highest if highest > 0 else 1), colormaps["cividis"]
    # Logarithmic where one height would flatten all others.
    least = min(float(np.nanmin(heights.to_numpy())) for _, heights, _ in shown)
    most = max(float(np.nanmax(heights.to_numpy())) for _, heights, _ in shown)
    log_z = least > 0 and most > 50 * least
    figure = plt.figure(figsize=(max(7, 4.6 * len(shown)), 4.8))
    for number, (name, heights, colours) in enumerate(shown):
        axes = figure.add_subplot(1, len(shown), number + 1, projection="3d", computed_zorder=False)
        across = np.log2(heights.columns.to_numpy(float)) if log_x else heights.columns.to_numpy(float)
        along = np.log2(heights.index.to_numpy(float)) if log_y else heights.index.to_numpy(float)
        grid_x, grid_y = np.meshgrid(across, along)
        of_nodes = colours.to_numpy()
        tall = np.log10(heights.to_numpy(float)) if log_z else heights.to_numpy(float)
        # A face leaves out a corner that has no value.
        corners = np.ma.masked_invalid([of_nodes[:-1, :-1], of_nodes[1:, :-1], of_nodes[:-1, 1:], of_nodes[1:, 1:]])
        of_faces = corners.mean(axis=0).filled(0)
        axes.plot_surface(grid_x, grid_y, tall, rstride=1, cstride=1, shade=False, edgecolor="0.25",
                          linewidth=0.5, facecolors=map_of_colours(norm(of_faces)), zorder=1)
        if of_nodes.size <= 40:  # they show through the surface, which many would hide
            axes.scatter(grid_x.ravel(), grid_y.ravel(), tall.ravel(), c=of_nodes.ravel(), s=14, norm=norm,
                         cmap=map_of_colours, edgecolor="0.15", linewidth=0.5, depthshade=False, zorder=2)
        axes.set_xticks(across, _apart(across, [x_words(value) for value in heights.columns]), fontsize=7)
        axes.set_yticks(along, _apart(along, [y_words(value) for value in heights.index]), fontsize=7)
        axes.tick_params(axis="z", labelsize=7)
        axes.set_xlabel(x_label, fontsize=8)
        axes.set_ylabel(y_label, fontsize=8)
        axes.set_zlabel(z_label, fontsize=8)
        if log_z:
            decades = range(int(np.floor(np.log10(least))), int(np.ceil(np.log10(most))) + 1)
            axes.set_zlim(decades[0], decades[-1])
            axes.set_zticks(decades, [f"{10.0**decade:,.10g}" for decade in decades])
        else:
            axes.set_zlim(bottom=0)
        holes = int(heights.isna().to_numpy().sum())
        axes.set_title(f"{name}\n{holes} of {heights.size} without a value: holes".strip() if holes else name)
        axes.set_xlim(min(across), max(across))
        axes.set_ylim(min(along), max(along))
        axes.view_init(elev=24, azim=-128)
    if highest == 0:
        colour_label += ": none anywhere"
    figure.colorbar(ScalarMappable(norm, map_of_colours), ax=figure.axes, label=colour_label, shrink=0.6, pad=0.08)
    titles(figure, title, subtitle)
    return figure


def heights_of(part, x, y, z):
    """The medians of `z`, a row for each `y` and a column for each `x`; NaN where there is none."""
    heights = part.pivot_table(index=y, columns=x, values=z, aggfunc="median")
    return heights.reindex(index=sorted(part[y].unique()), columns=sorted(part[x].unique()))


def has_a_face(heights):
    """Whether four neighbours have a value, of which a surface can have a face."""
    there = heights.notna().to_numpy()
    return bool((there[:-1, :-1] & there[1:, :-1] & there[:-1, 1:] & there[1:, 1:]).any())


def half_decades(values):
    """Limits of bins of half a decade each, around all values; two bins at least."""
    first, last = (int(np.floor(np.log10(value))) for value in (np.min(values), np.max(values)))
    return 10 ** (np.arange(2 * first, 2 * (last + 1) + 1) / 2)


def percentiles(series, title, subtitle="", y_label="latency [µs]", missing="lost"):
    """The tail: {label: samples in ns, or (values in ns, counts)} by percentile, where each nine takes as much room.

    Percentiles are those of the samples that there are; the legend counts those that are NaN, as `missing`.
    """
    figure, axes = plt.subplots(figsize=(8, 4.2))
    most = 0
    for number, (name, samples) in enumerate(series.items()):
        values, counts, absent = _weighted(samples)
        look = style(number)
        if not counts.sum():
            axes.plot([], label=_without_samples(name, absent, missing), color=look["color"], linestyle=look["linestyle"])
            continue
        order = np.argsort(values)
        passed = np.cumsum(counts[order])
        total = passed[-1]
        most = max(most, total)
        # The rarest of n samples is 1 in n.
        beyond = total / np.maximum(total - passed + counts[order], 1)
        axes.plot(beyond, values[order] / 1000, label=name + _and_absent(absent, missing), color=look["color"], linestyle=look["linestyle"], linewidth=1.4)
    axes.set_xscale("log")
    axes.set_xlim(1, max(most, 10))
    axes.xaxis.set_major_locator(LogLocator(10, numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda beyond, _: f"{100 - 100 / beyond:.10g} %"))
    log_if_wide(axes, [line.get_ydata() for line in axes.get_lines()])
    axes.set(xlabel="percentile", ylabel=y_label)
    axes.legend(loc="upper left")
    titles(figure, title, subtitle)
    return figure


def median_of(values, counts):
    """The median of weighted samples: the middle one, or half-way between the two in the middle."""
    order = np.argsort(values)
    passed = np.cumsum(counts[order])
    total = passed[-1]
    lower = values[order][np.searchsorted(passed, (total - 1) // 2 + 1)]
    upper = values[order][np.searchsorted(passed, total // 2 + 1)]
    return (lower + upper) / 2


def log_if_wide(axes, values):
    """A logarithmic axis of values where they span more than a factor of 20, else one that begins at 0."""
    values = np.concatenate([np.ravel(part).astype(float) for part in (values if isinstance(values, list) else [values])])
    values = values[np.isfinite(values)]
    if len(values) and values.min() > 0 and values.max() > 20 * values.min():
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif len(values):
        axes.set_ylim(0, 1.08 * values.max() or 1)


def _and_absent(absent, missing):
    return f", {absent:,} {missing}" if absent else ""


def _without_samples(name, absent, missing):
    return f"{name}: no samples{_and_absent(absent, missing)}"


def _in_floats(table):
    """The table with floats and NaN in place of `Int64` and `NA`, which NumPy and matplotlib do not take."""
    nullable = [name for name in table if isinstance(table[name].dtype, (pd.Int64Dtype, pd.Float64Dtype))]
    return table.astype({name: float for name in nullable})


def _weighted(samples):
    """Values, how often each is there, and how many have no value."""
    if isinstance(samples, Distribution):
        samples = samples.values_ns, samples.counts
    if isinstance(samples, tuple):
        values, counts = (np.asarray(part) for part in samples)
        return values[counts > 0], counts[counts > 0], 0
    values = samples.to_numpy(dtype=float, na_value=np.nan) if isinstance(samples, pd.Series) else np.asarray(samples, dtype=float)
    there = values[np.isfinite(values)]
    return there, np.ones(len(there), dtype=np.int64), len(values) - len(there)


def _range_of(weighted, wanted):
    low, high = USUAL_RANGE_NS
    drawn = [(values, counts) for values, counts, _ in weighted.values() if counts.sum()]
    total = sum(counts.sum() for _, counts in drawn)
    inside = sum(counts[(values >= low) & (values <= high)].sum() for values, counts in drawn)
    if not drawn or (wanted is None and inside * 10 >= total):
        return low, high
    ends = []
    for values, counts in drawn:
        order = np.argsort(values)
        passed = np.cumsum(counts[order])
        ends.append(values[order][np.searchsorted(passed, 0.95 * passed[-1])])
    return 0, float(max(ends)) * 1.5


def _apart(places, words, parts=7):
    """Words without those nearer to the one before than a part of the axis, on which they would stand."""
    least, last, kept = (max(places) - min(places)) / parts, -np.inf, []
    for place, word in zip(places, words):
        kept.append(word if place - last >= least else "")
        last = place if kept[-1] else last
    return kept


def _wrapped(text, width):
    lines = [""]
    for part in text.split(", "):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines[-1] += ","
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + part
    return lines
