"""An SVG of tokens per second against batch, with the roofline: logarithmic axes, readable on light and dark pages."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 78, 52
LETTER = 7  # width that is set aside for one
CURVE_POINTS = 96

STYLE = """
.page{fill:#ffffff}.grid{stroke:#d1d9e0;stroke-width:1}
text{font-family:system-ui,sans-serif;font-size:12px;fill:#1f2328}.title{font-size:14px;font-weight:600}
.roof{fill:none;stroke:#59636e;stroke-width:2;stroke-dasharray:6 4}
.s0{stroke:#0969da;fill:#0969da}.s1{stroke:#bc4c00;fill:#bc4c00}.series{fill:none;stroke-width:2}.key{stroke-width:3}
@media (prefers-color-scheme:dark){.page{fill:#0d1117}.grid{stroke:#30363d}text{fill:#f0f6fc}
.roof{stroke:#9198a1}.s0{stroke:#4493f8;fill:#4493f8}.s1{stroke:#f0883e;fill:#f0883e}.series{fill:none}}
"""


def ticks(low, high):
    """1, 2 and 5 times powers of ten that lie in the range."""
    first = math.floor(math.log10(low))
    last = math.ceil(math.log10(high))
    marks = [factor * 10 ** power for power in range(first, last + 1) for factor in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= high]


class Frame:
    """From batch and tokens per second to the picture."""

    def __init__(self, batches, rates):
        self.x_range = min(batches), max(max(batches), 2 * min(batches))
        self.y_range = min(rates) / 1.25, max(rates) * 1.25

    def x(self, batch):
        return LEFT + (WIDTH - LEFT - RIGHT) * _part(batch, self.x_range)

    def y(self, rate):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * _part(rate, self.y_range)


def _part(value, ends):
    return math.log(value / ends[0]) / math.log(ends[1] / ends[0])


def _text(x, y, anchor, words, kind=""):
    attribute = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attribute}>{escape(words)}</text>'


def _line(kind, x1, y1, x2, y2):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _axes(frame, batches):
    for rate in ticks(*frame.y_range):
        yield _line("grid", LEFT, frame.y(rate), WIDTH - RIGHT, frame.y(rate))
        yield _text(LEFT - 6, frame.y(rate) + 4, "end", f"{rate:g}")
    for batch in batches:
        yield _line("grid", frame.x(batch), TOP, frame.x(batch), HEIGHT - BOTTOM)
        yield _text(frame.x(batch), HEIGHT - BOTTOM + 16, "middle", f"{batch}")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "middle", "sequences that decode together")
    yield _text(LEFT, TOP - 8, "start", "tokens per second")


def _polyline(kind, points):
    return f'<polyline class="{kind}" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>'


def _series(frame, index, name, points):
    """Medians joined, and each one's range."""
    yield _polyline(f"series s{index}", [(frame.x(batch), frame.y(samples.median())) for batch, samples in points])
    for batch, samples in points:
        low, high = min(samples.numbers()), max(samples.numbers())
        yield _line(f"s{index}", frame.x(batch), frame.y(low), frame.x(batch), frame.y(high))
        yield (f'<circle class="s{index}" cx="{frame.x(batch):.1f}" cy="{frame.y(samples.median()):.1f}" r="4"><title>'
               f"{escape(name)}, batch {batch}: {samples.median():.1f} ({low:.1f} to {high:.1f})</title></circle>")


def _legend(names):
    x = WIDTH - RIGHT - sum(LETTER * len(name) + 36 for name in names)
    for index, name in enumerate(names):
        yield _line(f"s{index - 1} key" if index else "roof", x, TOP - 12, x + 16, TOP - 12)
        yield _text(x + 20, TOP - 8, "start", name)
        x += LETTER * len(name) + 36


def draw(titles, series, limit):
    """`titles` are two lines, `series` is {name: {batch: Samples}}, `limit` a function of the batch; batches without a result are left out."""
    points = {name: [(batch, samples) for batch, samples in one.items() if samples.numbers()] for name, one in series.items()}
    batches = sorted({batch for one in points.values() for batch, _ in one})
    if not batches:
        raise ValueError("nothing to draw: no batch has a result")
    top = max(batches[-1], 2 * batches[0])
    curve = [(batch, limit(batch)) for batch in
             (batches[0] * (top / batches[0]) ** (i / CURVE_POINTS) for i in range(CURVE_POINTS + 1))]
    curve = [(batch, rate) for batch, rate in curve if rate is not None]
    rates = [rate for _, rate in curve] + [number for one in points.values() for _, samples in one for number in samples.numbers()]
    frame = Frame(batches, rates)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', f"<title>{escape(titles[0])}</title>",
             f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
             _text(12, 22, "start", titles[0], "title"), _text(12, 40, "start", titles[1]), *_axes(frame, batches)]
    if curve:
        lines.append(_polyline("roof", [(frame.x(batch), frame.y(rate)) for batch, rate in curve]))
    for index, (name, one) in enumerate(points.items()):
        lines += _series(frame, index, name, one)
    return "\n".join([*lines, *_legend(["limit", *points]), "</svg>"]) + "\n"
