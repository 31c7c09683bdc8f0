"""The results of sweeps as a table: operations down, architectures across."""
import json
from collections import defaultdict


def read_results(path, program):
    """The last result of every case of a program; ignores results of other sources."""
    last = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        row = json.loads(line)
        if row.get("program") != program:
            continue
        last[row["arch"], row["op"], row["name"], row["implementation"]] = row
    return list(last.values())


def cell(rows):
    """Such as `34`, or `34, 1 differs`; too long ones did not run to their end."""
    if not rows:
        return "-"
    counts = defaultdict(int)
    for row in rows:
        counts[row["verdict"]] += 1
    parts = [str(counts.pop("ok", 0))]
    words = {"differs": "differ", "failed": "failed", "crash": "crashed", "timeout": "too long"}
    parts += [f"{count} {words[verdict]}" for verdict, count in sorted(counts.items())]
    return ", ".join(parts)


def markdown(rows):
    archs = sorted({row["arch"] for row in rows}, key=lambda arch: (len(arch), arch))
    cells = defaultdict(list)
    for row in rows:
        cells[row["op"], row["implementation"], row["arch"]].append(row)
    lines = ["| operation | implementation | " + " | ".join(archs) + " |", "|---|---|" + "---|" * len(archs)]
    for op, implementation in sorted({(row["op"], row["implementation"]) for row in rows}):
        found = [cell(cells[op, implementation, arch]) for arch in archs]
        lines.append(f"| {op} | {implementation} | " + " | ".join(found) + " |")
    sums = [cell([row for row in rows if row["arch"] == arch]) for arch in archs]
    lines.append("| all | | " + " | ".join(sums) + " |")
    return "\n".join(lines)
