#!/usr/bin/env python3
"""Draws docs/design/map.svg: the folders that includes.py has rules for, and who includes whom by the sources. An arrow
that a longer way of arrows says too is left out. lint.py compares the file with this."""

import argparse
import os
import re

import includes

FILE = "docs/design/map.svg"
LEFT_OUT = ("cli", "tools", "tests", "bench")  # they include everything
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SOURCES = (".h", ".cc", ".cu")
ROOMS = {"rbee": "#dcebdc", "backends": "#dde6f4", "server": "#f6e7d2", "workers": "#eedff0"}
BOX_HEIGHT, ROW, LETTER, GAP, MARGIN, MOST_WIDTH = 30, 84, 7.3, 26, 20, 1100


def arrows_of(root):
    """{folder: folders that its files include}."""
    folders = [folder for folder in includes.MAY_INCLUDE if folder.split("/")[0] not in LEFT_OUT]
    arrows = {folder: set() for folder in folders}
    for top in sorted({folder.split("/")[0] for folder in folders}):
        for here, names, found in os.walk(os.path.join(root, top)):
            names.sort()
            for name in found:
                path = os.path.relpath(os.path.join(here, name), root)
                own, _ = includes.rule_for(path)
                if not name.endswith(SOURCES) or own not in arrows:
                    continue
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    targets = {includes.rule_for(target)[0] for target in INCLUDE.findall(file.read())}
                arrows[own] |= {target for target in targets if target in arrows and target != own}
    return {folder: targets for folder, targets in arrows.items() if targets or any(folder in t for t in arrows.values())}


def circle_of(arrows):
    """Folders of which each includes the next, and the last the first; empty if there is no such circle."""
    done = set()

    def look(folder, way):
        if folder in way:
            return way[way.index(folder):]
        if folder in done:
            return []
        done.add(folder)
        return next(filter(None, (look(target, [*way, folder]) for target in sorted(arrows[folder]))), [])

    return next(filter(None, (look(folder, []) for folder in sorted(arrows))), [])


def reduced(arrows):
    """Without those that other arrows say together."""
    def reach(folder, seen):
        for target in arrows[folder]:
            if target not in seen:
                seen.add(target)
                reach(target, seen)
        return seen

    return {folder: {target for target in targets if not any(
        target in reach(other, set()) for other in targets if other != target)} for folder, targets in arrows.items()}


def floors_of(arrows):
    """Rows of folders, lowest first: each is above all folders that it includes."""
    floor = {}

    def place(folder):
        if folder not in floor:
            floor[folder] = 1 + max((place(target) for target in arrows[folder]), default=-1)
        return floor[folder]

    for folder in arrows:
        place(folder)
    return [sorted(folder for folder in arrows if floor[folder] == row) for row in range(max(floor.values(), default=-1) + 1)]


def width_of(folder):
    return LETTER * len(folder) + 22


def place_row(row):
    """{folder: middle} with the row in the middle of the picture."""
    total = sum(map(width_of, row)) + GAP * (len(row) - 1)
    at, middles = (MOST_WIDTH - total) / 2, {}
    for folder in row:
        middles[folder] = at + width_of(folder) / 2
        at += width_of(folder) + GAP
    return middles


def place_all(rows, arrows):
    """Rows ordered so that arrows are short: each folder near the mean of those that it has arrows with."""
    middles = {folder: x for row in rows for folder, x in place_row(row).items()}
    near = {folder: set(targets) for folder, targets in arrows.items()}
    for folder, targets in arrows.items():
        for target in targets:
            near[target].add(folder)
    for _ in range(12):
        for i, row in enumerate(rows):
            rows[i] = sorted(row, key=lambda f: (sum(middles[n] for n in near[f]) / max(len(near[f]), 1), f))
            middles.update(place_row(rows[i]))
    return middles


def draw(arrows):
    arrows = reduced(arrows)
    rows = floors_of(arrows)
    middles = place_all(rows, arrows)
    height = MARGIN * 2 + ROW * (len(rows) - 1) + BOX_HEIGHT
    top = {folder: MARGIN + ROW * (len(rows) - 1 - i) for i, row in enumerate(rows) for folder in row}
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {MOST_WIDTH} {height}" '
           'font-family="monospace" font-size="12" role="img">',
           "<title>Which folder includes which; an arrow points at what is included</title>",
           f'<rect width="{MOST_WIDTH}" height="{height}" fill="#ffffff"/>',
           '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
           '<path d="M0 0 L8 4 L0 8 z" fill="#555555"/></marker>']
    for folder in sorted(arrows):
        for target in sorted(arrows[folder]):
            x, y, to_x, to_y = middles[folder], top[folder] + BOX_HEIGHT, middles[target], top[target]
            bend = (to_y - y) / 2
            shade = "#555555" if to_y - y < ROW else "#b0b0b0"  # past other rows: fainter, they cross much
            out.append(f'<path d="M{x:.0f} {y} C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y}" '
                       f'fill="none" stroke="{shade}" marker-end="url(#tip)"/>')
    for folder in sorted(arrows):
        x, y, width = middles[folder] - width_of(folder) / 2, top[folder], width_of(folder)
        out.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX_HEIGHT}" rx="5" '
                   f'fill="{ROOMS[folder.split("/")[0]]}" stroke="#555555"/>')
        out.append(f'<text x="{middles[folder]:.0f}" y="{y + 19}" text-anchor="middle" fill="#111111">{folder}</text>')
    return "\n".join([*out, "</svg>\n"])


def stale(root):
    """(path, line, problem) if the picture shows other arrows than the sources have."""
    path = os.path.join(root, FILE)
    if not os.path.exists(path):
        return
    arrows = arrows_of(root)
    if circle := circle_of(arrows):
        yield FILE, 1, f"the folders {' -> '.join([*circle, circle[0]])} include one another in a circle"
        return
    with open(path, encoding="utf-8") as file:
        if file.read() != draw(arrows):
            yield FILE, 1, "shows other arrows than the sources have; tools/lint/folder_map.py draws it anew"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", default=".", help="of the tree; this folder")
    base = parser.parse_args().root
    if round_trip := circle_of(arrows_of(base)):
        raise SystemExit(f"folders include one another in a circle: {', '.join(round_trip)}")
    with open(os.path.join(base, FILE), "w", encoding="utf-8") as picture:
        picture.write(draw(arrows_of(base)))
