"""The samples of one measured quantity, a number per round, and what is printed of them."""

import statistics
from dataclasses import dataclass, field


@dataclass
class Samples:
    """None where a round has no result."""

    rounds: list = field(default_factory=list)

    def numbers(self):
        return [sample for sample in self.rounds if sample is not None]

    def median(self):
        numbers = self.numbers()
        return statistics.median(numbers) if numbers else None


def ratios(ours, others):
    """Round by round: what disturbed both disturbs the ratio less."""
    return Samples([ours_one / others_one if ours_one is not None and others_one else None
                    for ours_one, others_one in zip(ours.rounds, others.rounds)])


def number(value):
    """Three significant digits, or all before the point."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(samples):
    """"51.4 (50.1 to 52.0)": the median, and the range where there are several."""
    numbers = samples.numbers()
    if not numbers:
        return "-"
    middle = number(samples.median())
    return f"{middle} ({number(min(numbers))} to {number(max(numbers))})" if len(numbers) > 1 else middle


def part(value, whole):
    """"82%", or "-" where either is unknown."""
    return f"{100 * value / whole:.0f}%" if value is not None and whole else "-"


def table(header, rows):
    """Lines of a Markdown table, padded to be readable as plain text."""
    cells = [list(map(str, row)) for row in [header, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "| " + " | ".join("-" * max(3, width) for width in widths) + " |")
    return lines
