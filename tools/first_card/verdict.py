"""Decides from the steps' findings where a fault is: in a kernel, the runtime, or a library."""
import re
from dataclasses import dataclass, field

TOTAL = re.compile(r"^(\d+) cases passed, (\d+) failed, (\d+) of them ended their process; (\d+) were not run", re.M)
ROW = re.compile(r"^\| (\w+) \| (\d+) \| (\d+) \|", re.M)
NOT_CAPTURED = "steps are not captured"  # in `rbee devices`, before the reason
MOST_PICTURE_MEAN = 2.0  # of 255 between a device and the CPU; 0.5 was seen


@dataclass
class Findings:
    card: str = ""
    opens: bool = True
    passed: int = 0
    failed: dict = field(default_factory=dict)  # of an operation: cases that failed, without vendor libraries
    ended: int = 0  # of these, cases that ended their process
    alone: set = field(default_factory=set)  # operations that pass if kernels run one at a time
    libraries: dict = field(default_factory=dict)  # like failed, for operations that pass without vendor libraries
    checked: bool = False  # operations ran
    # Of each way of running: of each run, whether it was the CPU's (None: there was no result).
    plain: list = field(default_factory=list)  # steps are not captured
    captured: list = field(default_factory=list)
    unsteady: bool = False  # runs of one way differ from each other
    unlike: list = field(default_factory=list)  # names of results that differ from the CPU's
    kernel_log: list = field(default_factory=list)  # lines of faults that came during the run
    failing_steps: list = field(default_factory=list)


LIBRARY_ROW = re.compile(r"^\| \w+ \| (?:hipblaslt|cublaslt) \| (\d+) of ", re.M)


def library_takes_cases(table):
    """Of `opcheck --table`: whether any operation has cases for the vendor's library."""
    return any(int(cases) > 0 for cases in LIBRARY_ROW.findall(table))


def read_operations(text):
    """How many cases passed, those that failed by operation, and how many ended their process."""
    failed = {op: int(bad) for op, _, bad in ROW.findall(text) if int(bad) > 0}
    total = TOTAL.search(text)
    if not total:
        return 0, failed, 0
    return int(total.group(1)), failed, int(total.group(3))


FAULT = re.compile(r"(?i)page fault|memory access fault|ring \S+ timeout|gpu reset|hang|xid|ecc|uncorrect|atomics")


def faults_of(before, after):
    """Lines of the kernel's log that came between two readings and speak of a fault."""
    seen = set(before.splitlines())
    return [line for line in after.splitlines() if line not in seen and FAULT.search(line)]


def names(counts):
    listed = [f"{op} ({count})" for op, count in sorted(counts.items(), key=lambda pair: -pair[1])]
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")


def blame(found):
    """One sentence for each fault, the likeliest first."""
    if not found.opens:
        return ["RUNTIME: the device cannot be opened; the file has the runtime's words"]
    out = []
    kernels = {op: count for op, count in found.failed.items() if op not in found.alone}
    if kernels:
        out.append(f"KERNELS: cases fail by themselves, and one at a time too: {names(kernels)}")
    if found.alone:
        out.append("RUNTIME (order of work): right when kernels run one at a time: " + ", ".join(sorted(found.alone)))
    if found.libraries:
        out.append(f"VENDOR LIBRARY: right without it, wrong with it: {names(found.libraries)}")
    plain_right = bool(found.plain) and all(found.plain)
    captured_right = all(found.captured)
    if plain_right and not captured_right:
        known = "; the program captures none here by itself" if NOT_CAPTURED in found.card else ""
        out.append(f"RUNTIME (captured steps): the CPU's results without capture, others with it{known}")
    if found.unsteady:
        out.append("RUNTIME (or a race): results change from run to run")
    if False in found.plain and not kernels and not found.unsteady:
        out.append("UNDECIDED: operations pass, models differ from the CPU: " + ", ".join(found.unlike[:4]))
    if None in found.plain and not kernels:
        out.append("UNDECIDED: operations pass, runs of models end without a result; see the steps")
    if found.kernel_log:
        out.append(f"KERNEL LOG: {len(found.kernel_log)} lines of faults, e.g. {found.kernel_log[0][-90:]}")
    return out


def counted(results):
    return f"{sum(result is True for result in results)} of {len(results)} as the CPU's"


def summary(found):
    """At most ten lines."""
    lines = [f"card        {found.card}"]
    if found.checked:
        bad = sum(found.failed.values())
        lines.append(f"operations  {found.passed} cases pass, {bad} fail, {found.ended} of them ended their process")
    if found.plain or found.captured:
        lines.append(f"models      {counted(found.plain)} without capture, {counted(found.captured)} with it")
    if found.failing_steps:
        steps = dict.fromkeys(re.sub(r"-\d+$", "", step) for step in found.failing_steps)
        lines.append("steps       did not end well: " + ", ".join(steps)[:150])
    faults = blame(found)
    if faults:
        lines += [f"verdict     {fault}" for fault in faults[:5]]
    elif found.checked and found.plain and found.failing_steps:
        lines.append("verdict     operations and models are right; look at the steps above")
    elif found.checked and found.plain:
        lines.append("verdict     no fault found")
    else:
        lines.append("verdict     none: operations or models did not run")
    return lines
