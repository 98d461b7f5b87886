"""A bar chart of benchmark medians as SVG, by hand: one panel per bench and worker count, one bar per program."""
from html import escape

MORE_IS_BETTER = ("MB/s", "req/s")
COLOURS = {"weft": "#c2410c", "go": "#0e7490", "tokio": "#4d7c0f", "tokio_ct": "#84a94f", "tbb": "#6d28d9",
           "boost_fiber": "#475569", "boost_fiber_sw": "#64748b", "boost_fiber_ws": "#94a3b8", "threads": "#a8a29e"}
COLUMNS, PANEL_WIDTH, GAP, MARGIN = 2, 520, 24, 24
NAME_WIDTH, VALUE_WIDTH, BAR, TITLE = 110, 90, 18, 28
CLIP = 4  # a bar longer than this many times the best one is cut and marked


def figure(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def panel(entry, x, y):
    """The SVG of one panel, as lines."""
    more = entry["unit"] in MORE_IS_BETTER
    bars = sorted(((v, p) for p, v in entry["median"].items() if v is not None), reverse=more)
    workers = f"{entry['workers']} worker" + ("s" if entry["workers"] != 1 else "")
    hint = ", longer is better" if more else ""
    yield (f'<text x="{x}" y="{y + 14}"><tspan font-weight="600">{escape(entry["bench"])}</tspan>'
           f'<tspan fill="#57534e" dx="4">· {workers} · {escape(entry["unit"])}{hint}</tspan></text>')
    if not bars:
        return
    smallest, largest = min(v for v, _ in bars), max(v for v, _ in bars)
    full = largest if more else min(largest, CLIP * smallest) or largest or 1
    room = PANEL_WIDTH - NAME_WIDTH - VALUE_WIDTH
    for i, (value, peer) in enumerate(bars):
        top = y + TITLE + i * BAR
        width = max(1.0, room * min(value / full, 1)) if full else 1.0
        left, right = x + NAME_WIDTH, x + NAME_WIDTH + width
        weight = ' font-weight="600"' if peer == "weft" else ""
        yield f'<text x="{left - 8}" y="{top + 12}" text-anchor="end"{weight}>{escape(peer)}</text>'
        yield (f'<rect x="{left}" y="{top + 2}" width="{width:.1f}" height="{BAR - 5}" rx="2" '
               f'fill="{COLOURS.get(peer, "#b45309")}"/>')
        if value > full:  # cut: two white strokes across the bar
            yield (f'<path d="M{right - 16:.1f} {top + BAR - 2} l5 {-BAR + 3} m4 0 l-5 {BAR - 3}" stroke="#fff" '
                   f'stroke-width="2" fill="none"/>')
        yield f'<text x="{right + 6:.1f}" y="{top + 12}"{weight}>{figure(value)}</text>'


def height(entry):
    return TITLE + BAR * max(1, sum(v is not None for v in entry["median"].values()))


def draw(medians):
    lines, y = [], MARGIN + 44
    for start in range(0, len(medians), COLUMNS):
        row = medians[start:start + COLUMNS]
        for i, entry in enumerate(row):
            lines += panel(entry, MARGIN + i * (PANEL_WIDTH + GAP), y)
        y += max(map(height, row)) + GAP
    total_width = 2 * MARGIN + COLUMNS * PANEL_WIDTH + (COLUMNS - 1) * GAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total_width}" height="{y}" viewBox="0 0 {total_width} {y}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#1c1917">',
        f'<rect width="{total_width}" height="{y}" fill="#fff"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 12}" font-size="16" font-weight="600">Weft and its peers</text>',
        f'<text x="{MARGIN}" y="{MARGIN + 30}" fill="#57534e">medians; shorter is better unless said; a bar beyond '
        f'{CLIP} times the best is cut</text>',
        *lines, "</svg>", ""])
