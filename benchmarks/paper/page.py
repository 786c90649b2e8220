"""Writes docs/paper.md and its pictures.

In: for each family of rows the numbers in the middle of the settings' ranges,
those at their ends, and those of the controls, or why there are none. Out: the
page's text, and curves as SVG.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paper.constants import (
    KINDS,
    LINKS,
    MODEL,
    NETWORK,
    TCP_BANDWIDTH,
    Number,
)
from paper.figures import COUNTS, Numbers
from paper.rows import (
    BERT,
    EXPERTS,
    MISSING,
    REASONS,
    RESNET,
    SEEN,
    Check,
    Family,
)
from paper.settings import SETTINGS


@dataclasses.dataclass
class Made:
    """What became of a family of rows."""

    family: Family
    middle: Numbers | None = None
    why_not: str = ""
    spread: list[Numbers] = dataclasses.field(default_factory=list)
    # By control: its numbers, or why there are none.
    controls: list[Numbers | str] = dataclasses.field(default_factory=list)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def show(check: Check, number: float) -> str:
    """Yes and no where the paper has a word."""
    if check.theirs in ("yes", "no"):
        return "yes" if number else "no"
    return f"{number:.3g}" if number >= 1 else f"{number:.3f}"


def _spread_of(made: Made, check: Check) -> str:
    numbers = [n[check.key] for n in made.spread if check.key in n]
    if made.middle is not None:
        numbers.append(made.middle[check.key])
    if len(numbers) < 2 or check.theirs in ("yes", "no"):
        return ""
    return f"{show(check, min(numbers))} to {show(check, max(numbers))}"


def _rows_of(made: Made) -> list[list[str]]:
    rows = []
    for check in made.family.checks:
        if made.middle is None or check.key not in made.middle:
            ours, met = made.why_not or "-", "no"
        else:
            ours = show(check, made.middle[check.key])
            met = "yes" if check.is_met(made.middle) else "**no**"
        rows.append(
            [
                check.figure,
                ours,
                _spread_of(made, check),
                check.theirs,
                check.accepted,
                met,
            ]
        )
    growing = made.family.growing
    if growing and made.middle is not None:
        numbers = [made.middle[key] for key in growing]
        is_growing = numbers == sorted(numbers)
        rows.append(
            [
                "grows with the number of devices",
                "yes" if is_growing else "no",
                "",
                "yes",
                "yes",
                "yes" if is_growing else "**no**",
            ]
        )
    return rows


def figures_table(all_made: Sequence[Made]) -> str:
    text = ""
    for made in all_made:
        text += f"### {made.family.name}\n\n"
        text += table(
            ("figure", "ours", "spread", "the paper's", "accepted", "met"),
            _rows_of(made),
        )
        text += "\n"
    return text


def experts_table(experts: dict[str, Numbers | str]) -> str:
    """Models that have no figure of their own to meet."""
    rows = []
    for size, devices, theirs in EXPERTS:
        if size not in experts:
            continue
        numbers = experts[size]
        of = f"M6-MoE-{size}, {devices} V100"
        if isinstance(numbers, str):
            rows.append([of, numbers, "", "", "", theirs])
            continue
        rows.append(
            [
                of,
                "yes" if numbers["fits"] else "no",
                f"{numbers['rate']:.0f}",
                f"{numbers['device hours']:.0f}",
                f"{numbers['megawatt hours']:.2f}",
                theirs,
            ]
        )
    head = ("model", "fits", "samples/s", "hours of devices", "MWh")
    return table((*head, "published"), rows)


def _control_rows(made: Made) -> list[list[str]]:
    rows = []
    checks = {check.key: check for check in made.family.checks}
    for control, numbers in zip(made.family.controls, made.controls):
        for key in control.fails:
            check = checks[key]
            if isinstance(numbers, str) or key not in numbers:
                why = numbers if isinstance(numbers, str) else "does not fit"
                ours, fails = why, "yes"
            else:
                ours = show(check, numbers[key])
                fails = "**no**" if check.is_met(numbers) else "yes"
            rows.append(
                [
                    made.family.name,
                    check.figure,
                    control.what,
                    ours,
                    f"{check.theirs}, {check.accepted}",
                    fails,
                ]
            )
    return rows


def controls_table(all_made: Sequence[Made]) -> str:
    return table(
        ("rows", "figure", "without", "ours", "accepted", "fails, as it must"),
        [row for made in all_made for row in _control_rows(made)],
    )


def _describe(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(
            f"{name}: {_describe(part)}" for name, part in value.items()
        )
    if isinstance(value, list):
        return ", ".join(f"{part:g} at {at:.3g}" for at, part in value)
    if isinstance(value, float | int):
        return f"{value:.4g}"
    return str(value)


def _number_rows(of: str, numbers: dict[str, Number]) -> list[list[str]]:
    return [
        [
            of,
            f"`{field}`",
            _describe(number.value),
            number.source + (" **[inferred]**" if number.is_inferred else ""),
        ]
        for field, number in numbers.items()
    ]


def constants_table() -> str:
    rows = []
    for kind, numbers in KINDS.items():
        rows += _number_rows(kind, numbers)
        rows += _number_rows(f"{kind}, link", LINKS.get(kind, {}))
    rows += _number_rows("network of 50 Gb/s", NETWORK)
    rows += _number_rows("all networks", MODEL)
    rows += _number_rows("the same by TCP", {"bandwidth": TCP_BANDWIDTH})
    return table(("of", "field", "value", "source"), rows)


def settings_table() -> str:
    return table(
        ("setting", "value", "range", "reason"),
        [
            [
                f"`{name}`",
                str(setting.value),
                f"{setting.low} to {setting.high}"
                if setting.low != setting.high
                else "",
                setting.reason,
            ]
            for name, setting in SETTINGS.items()
        ],
    )


@dataclasses.dataclass(frozen=True)
class Curve:
    """Values by the number of devices."""

    name: str
    values: dict[int, float]
    color: str
    is_theirs: bool = False


def draw(title: str, unit: str, curves: Sequence[Curve]) -> str:
    """Both axes are linear from 0; the paper's curves are dashed."""
    width, height, left, top, right, bottom = 640, 360, 60, 40, 190, 40
    most = max(max(curve.values.values()) for curve in curves) * 1.05
    last = max(max(curve.values) for curve in curves)

    def x_of(count: float) -> float:
        return left + (width - left - right) * count / last

    def y_of(value: float) -> float:
        return height - bottom - (height - top - bottom) * value / most

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} '
        f'{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="20" font-size="14">{title}</text>',
        f'<path d="M{left} {top}V{height - bottom}H{width - right}" '
        'fill="none" stroke="black"/>',
        f'<text x="{width - right}" y="{height - 8}" text-anchor="end">'
        "devices</text>",
        f'<text x="{left}" y="{top - 6}">{unit}</text>',
    ]
    for count in sorted({count for c in curves for count in c.values}):
        parts.append(
            f'<text x="{x_of(count):.1f}" y="{height - bottom + 16}" '
            f'text-anchor="middle">{count}</text>'
        )
    for step in range(5):
        value = most * step / 4
        parts.append(
            f'<text x="{left - 6}" y="{y_of(value) + 4:.1f}" '
            f'text-anchor="end">{value:.3g}</text>'
        )
    for number, curve in enumerate(curves):
        points = " ".join(
            f"{x_of(count):.1f},{y_of(value):.1f}"
            for count, value in sorted(curve.values.items())
        )
        dash = ' stroke-dasharray="6 4"' if curve.is_theirs else ""
        line = f'fill="none" stroke="{curve.color}" stroke-width="2"{dash}'
        y = top + 10 + 20 * number
        parts += [
            f'<polyline points="{points}" {line}/>',
            f'<path d="M{width - right + 15} {y}h30" {line}/>',
            f'<text x="{width - right + 52}" y="{y + 4}">{curve.name}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


def _by_count(numbers: Numbers, name: str) -> dict[int, float]:
    return {count: numbers[f"{name} {count}"] for count in COUNTS}


OURS, OTHER = "#1f77b4", "#d62728"
THEIR_RATES = {
    "hybrid": {8: 2542.0, 16: 4724.0, 32: 8793.0},
    "data parallel": {8: 2247.0, 16: 2847.0, 32: 3611.0},
}


def pictures(all_made: Sequence[Made]) -> dict[str, tuple[str, str]]:
    """By file name: what it shows, and the SVG."""
    middles = {made.family.name: made.middle for made in all_made}
    files = {}
    title = "ResNet-50 with 100,000 classes"
    if numbers := middles.get(title):
        curves = []
        for color, name in ((OURS, "hybrid"), (OTHER, "data parallel")):
            ours = _by_count(numbers, f"rate {name}")
            curves += [
                Curve(name, ours, color),
                Curve(f"{name}, the paper", THEIR_RATES[name], color, True),
            ]
        files["classes.svg"] = title, draw(title, "images/s", curves)
    curves = []
    for color, name, theirs in (
        (OURS, "ResNet-50", RESNET),
        (OTHER, "BertLarge", BERT),
    ):
        if numbers := middles.get(f"{name}, data parallel"):
            ours = {1: 1.0} | _by_count(numbers, "speed-up")
            curves += [
                Curve(name, ours, color),
                Curve(f"{name}, the paper", {1: 1.0} | theirs, color, True),
            ]
    if curves:
        title = "Data parallel, times as fast as one V100"
        files["scaling.svg"] = title, draw(title, "times", curves)
    return files


INTRODUCTION = """# The paper's figures

`scripts/paper` makes this page: it compiles each step for the cluster that the
Whale paper (ATC'22) measured it on, asks [whale-sim](simulator.md) what it
takes, and puts that beside what the paper has. No constant was fitted: devices
and networks have the numbers of [constants](#constants), each with its source,
and what the paper doesn't print is among [settings](#settings); some choices
are [no prediction](#what-is-no-prediction). `ours` is made with the value of
each setting; `spread` is from the least to the most where
one of {varied} is at an end of its range.

Steps are compiled with `--target=none`, in f32. Where gradients are not
exchanged while the backward goes on (`overlap`, in data parallel steps), a step
takes what its slowest device computes and all that is exchanged, one after the
other.

"""


def write(
    all_made: Sequence[Made],
    experts: dict[str, Numbers | str],
    is_quick: bool,
    folder: str,
) -> tuple[str, dict[str, str]]:
    """The page, and by file name its pictures in the folder beside it."""
    varied = "the network's bandwidth and `overlap`"
    if not is_quick:
        varied += " and the other settings"
    text = (
        INTRODUCTION.format(varied=varied)
        + "## Figures\n\n"
        + figures_table(all_made)
    )
    if experts:
        text += "### Mixtures of experts\n\n"
        text += "Hours and energy are those of 100 million samples.\n\n"
        text += experts_table(experts) + "\n"
    drawn = pictures(all_made)
    for name, (title, _) in drawn.items():
        text += f"![{title}]({folder}/{name})\n\n"
    text += "### Why figures are missed\n\n"
    text += table(("rows", "why"), REASONS) + "\n"
    text += "### What cannot be made yet\n\n"
    text += table(("figure", "why"), MISSING) + "\n"
    text += "### What is no prediction\n\n"
    text += table(("choice", "how it came about"), SEEN) + "\n"
    text += (
        "## Controls\n\nThe same with something taken away. Each of these "
        "figures must miss what is accepted: else it would say nothing. With "
        "equal shares or stages it is 1 by construction.\n\n"
    )
    text += controls_table(all_made)
    text += "\n## Constants\n\n" + constants_table()
    text += "\n## Settings\n\n" + settings_table()
    return text, {name: picture for name, (_, picture) in drawn.items()}
