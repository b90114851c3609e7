"""The figures, readable without colours: a method keeps its marker, a phase its hatch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ..metrics.uncertainty import Estimate
from .runs import Comparison, Report, Result

# Okabe and Ito's colours, which colour-blind readers tell apart.
BLACK, GREY, BLUE, SKY, PINK = "#000000", "#8c8c8c", "#0072B2", "#56B4E9", "#CC79A7"
GREEN, YELLOW, ORANGE, RED = "#009E73", "#F0E442", "#E69F00", "#D55E00"
METHOD_STYLES = {
    "autoregressive": (BLACK, "s"),
    "draft_only": (GREY, "v"),
    "specsampling": (BLUE, "o"),
    "prompt_lookup": (SKY, "^"),
    "assisted": (SKY, "D"),
    "specreason": (PINK, "p"),
    "speculative_thinking": (PINK, "h"),
    "lookahead_reasoning": (GREEN, "<"),
    "confspec": (GREEN, ">"),
    "semanticspec": (RED, "*"),
    "random_accept": (ORANGE, "X"),
    "oracle": (YELLOW, "P"),
}
OTHER_STYLE = (GREY, "d")
PHASE_STYLES = {
    "prefill": (YELLOW, ""),
    "draft": (SKY, "////"),
    "verify": (BLUE, "xxx"),
    "probe": (PINK, "...."),
    "target": (RED, ""),
    "other": ("#dddddd", "\\\\"),
}
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "semanticspec",
}
Panel = Callable[[Axes, Comparison], None]


def write(report: Report, folder: Path) -> list[Path]:
    """Draw every figure that the runs allow, as PNG and PDF; returns the files."""
    paired = [c for c in report.comparisons if any(r.summary.speedup for r in c.results)]
    with plt.rc_context(STYLE):
        files = _save(time_split(report.comparisons), folder / "time_split")
        if paired:
            files = _save(accuracy_speedup(paired), folder / "accuracy_speedup") + files
    return files


def accuracy_speedup(comparisons: Sequence[Comparison]) -> Figure:
    """Accuracy against speedup, a panel a benchmark, both with their 95 % intervals."""
    labels = "speedup over autoregressive (log scale)", "pass@1, %"
    return _panels(comparisons, _accuracy_speedup, labels, height=2.4, share_x=True)


def _accuracy_speedup(axes: Axes, comparison: Comparison) -> None:
    axes.axvline(1, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    for index, result in enumerate(comparison.results):
        speedup, accuracy = result.summary.speedup, result.summary.pass_at_1
        if speedup is None:
            continue
        colour, marker = METHOD_STYLES.get(result.method, OTHER_STYLE)
        axes.errorbar(
            speedup.value,
            100 * accuracy.value,
            xerr=_whiskers(speedup, 1),
            yerr=_whiskers(accuracy, 100),
            fmt=marker,
            color=colour,
            ecolor=colour,
            elinewidth=1,
            capsize=2,
            markersize=11 if marker == "*" else 7,
            markeredgecolor="white",
            markeredgewidth=0.7,
            label=result.method,
            zorder=100 - index,  # the controls, which come last, lie below
        )
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.margins(x=0.1, y=0.1)
    axes.grid(color="#eeeeee")
    axes.set_axisbelow(True)


def _speedup_ticks(low: float, high: float) -> FixedLocator | MaxNLocator:
    """Round numbers, few enough to be read."""
    if high / low < 2.5:
        return MaxNLocator(5)
    digits = (1, 2, 5) if high / low > 10 else (1, 1.5, 2, 3, 4, 6, 8)
    return FixedLocator([digit * 10**power for power in range(-3, 4) for digit in digits])


def _whiskers(estimate: Estimate, scale: float) -> list[list[float]] | None:
    """Distances below and above the value; nothing where the interval is unknown."""
    if math.isnan(estimate.low):
        return None
    below, above = estimate.value - estimate.low, estimate.high - estimate.value
    return [[scale * max(0.0, below)], [scale * max(0.0, above)]]


def time_split(comparisons: Sequence[Comparison]) -> Figure:
    """Where the milliseconds of a token go, a panel a benchmark, a bar a method."""
    n_bars = max(len(comparison.results) for comparison in comparisons)
    labels = "milliseconds a token", ""
    return _panels(comparisons, _time_split, labels, height=0.6 + 0.26 * n_bars)


def _time_split(axes: Axes, comparison: Comparison) -> None:
    results: list[Result] = [r for r in comparison.results if r.summary.n > r.summary.n_failed]
    names = [result.method for result in results]
    left = [0.0] * len(results)
    for phase, (colour, hatch) in PHASE_STYLES.items():
        widths = [result.phase_ms[phase] for result in results]
        axes.barh(
            names,
            widths,
            left=left,
            height=0.7,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.5,
            label=phase,
        )
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.margins(x=0.04)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.tick_params(axis="y", length=0)


def _panels(
    comparisons: Sequence[Comparison],
    draw: Panel,
    labels: tuple[str, str],
    *,
    height: float,
    share_x: bool = False,
) -> Figure:
    """A grid of panels with their axes' labels (x, y) at the edges, and one legend below."""
    n_columns = min(len(comparisons), 2 if len(comparisons) <= 4 else 3)
    n_rows = math.ceil(len(comparisons) / n_columns)
    figure, grid = plt.subplots(
        n_rows,
        n_columns,
        figsize=(max(4.8, 3.6 * n_columns), height * n_rows + 0.9),
        squeeze=False,
        sharex=share_x,
        layout="constrained",
    )
    one_model = len({comparison.model for comparison in comparisons}) == 1
    legend: dict[str, Any] = {}
    for index, (axes, comparison) in enumerate(zip(grid.flat, comparisons, strict=False)):
        draw(axes, comparison)
        title = comparison.benchmark
        axes.set_title(title if one_model else f"{comparison.model} / {title}", loc="left")
        if index + n_columns >= len(comparisons):
            axes.set_xlabel(labels[0])
            axes.tick_params(axis="x", labelbottom=True)
        if index % n_columns == 0:
            axes.set_ylabel(labels[1])
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            whole = isinstance(handle, ErrorbarContainer)
            legend.setdefault(label, handle[0] if whole else handle)
    if share_x:
        grid.flat[0].xaxis.set_major_locator(_speedup_ticks(*grid.flat[0].get_xlim()))
    for axes in grid.flat[len(comparisons) :]:
        axes.set_visible(False)
    figure.legend(
        list(legend.values()),
        list(legend),
        loc="outside lower center",
        ncols=min(len(legend), 3 * n_columns),
        frameon=False,
    )
    return figure


def _save(figure: Figure, stem: Path) -> list[Path]:
    files = [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
    figure.savefig(files[0], dpi=200, metadata={"Software": None})
    figure.savefig(files[1], metadata={"CreationDate": None})
    plt.close(figure)
    return files
