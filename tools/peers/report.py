"""Rows of a comparison: medians, ratios pair by pair, shares of a limit, and what was to be reached."""

import statistics
from dataclasses import dataclass, field


@dataclass
class Target:
    """`of`: "ours", "ratio" (ours by the peer's) or "share" (of the limit); met from `value` on, or
    up to it."""

    of: str
    value: float
    at_most: bool = False

    def met(self, figure):
        return figure <= self.value if self.at_most else figure >= self.value

    def __str__(self):
        sign = "<=" if self.at_most else ">="
        if self.of == "share":
            return f"{sign} {100 * self.value:.0f} % of the limit"
        if self.of == "ratio":
            return f"{sign} {self.value:g} x the peer's"
        return f"{sign} {number(self.value)}"


@dataclass
class Row:
    """One piece of work. `ours` and `peer` hold a figure for each round, in the same order."""

    work: str
    unit: str
    ours: list
    peer_name: str = ""
    peer: list = field(default_factory=list)
    limit: float = 0.0  # 0: there is none
    target: Target | None = None
    falling: bool = False  # smaller figures are better: the limit is the least possible

    def figure(self, of):
        """The figure that a target speaks of; None where it was not measured."""
        if of == "ours":
            return statistics.median(self.ours)
        if of == "share":
            if not self.limit:
                return None
            share = statistics.median(self.ours) / self.limit
            return 1 / share if self.falling else share
        if not self.peer:
            return None
        return statistics.median(mine / other for mine, other in zip(self.ours, self.peer))

    def missed(self):
        """True when the target's figure is known and not reached."""
        if self.target is None:
            return False
        figure = self.figure(self.target.of)
        return figure is not None and not self.target.met(figure)

    def as_dict(self):
        return {"work": self.work, "unit": self.unit, "ours": statistics.median(self.ours),
                "rounds_ours": self.ours, "peer_name": self.peer_name or None,
                "peer": statistics.median(self.peer) if self.peer else None,
                "rounds_peer": self.peer, "ratio": self.figure("ratio"),
                "limit": self.limit or None, "share": self.figure("share"),
                "to_reach": str(self.target) if self.target else None, "missed": self.missed()}


def number(value):
    """Three digits at least, thousands apart."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def cells(row):
    peer, ratio, share = "-", "-", "-"
    if row.peer:
        peer = f"{row.peer_name} {number(statistics.median(row.peer))}"
        ratio = f"{row.figure('ratio'):.2f}"
    elif row.peer_name:
        peer = row.peer_name  # why there is no figure
    if row.limit:
        share = f"{100 * row.figure('share'):.0f} %"
    reach = str(row.target) if row.target else "-"
    if row.missed():
        reach += " MISSED"
    return [f"{row.work}, {row.unit}", number(statistics.median(row.ours)), peer, ratio,
            number(row.limit) if row.limit else "-", share, reach]


HEADER = ["work", "ours", "peer", "ratio", "limit", "share of the limit", "to reach"]


def table(rows):
    """A Markdown table, its columns lined up for a terminal."""
    lines = [HEADER] + [cells(row) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
            for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)
