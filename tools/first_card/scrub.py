"""Removes personal and machine data from texts: names, homes, addresses, serial numbers."""
import getpass
import os
import re
import socket
import tempfile
from pathlib import Path

# Of the kernel's command line, options that matter to a GPU stay; others name disks and keys.
GPU_OPTIONS = re.compile(r"(?:amdgpu|nvidia|radeon|nouveau|amd_iommu|intel_iommu|iommu|pci|pcie_aspm|mitigations)[.=]\S*")
COMMAND_LINE = re.compile(r"(?i)((?:kernel )?command line: )(.*)")
# A fault's line names the process whose work was on the card: ours, or what else the user runs.
PROCESS = re.compile(r"\b((?:process|thread) (?:name )?)(?!rbee|opcheck|llm-worker|sd-worker|\w+_bench)\S+( pid)")
# Names that tell nothing, and words that stand in drivers' texts.
PUBLIC_NAMES = {"root", "user", "amd", "gpu", "nvidia", "localhost", "linux", "debian", "ubuntu"}
RULES = [
    # Variables or fields with a secret's name, and texts that begin like keys of known services.
    (re.compile(r"""(?i)(\w*(?:_key|_token|secret|passw(?:or)?d|credentials?)['"]?\s*[=:]\s*)('[^']*'|"[^"]*"|[^\s'"]+)"""),
     r"\1SECRET"),
    (re.compile(r"\b(?:nvapi-|hf_|sk-|gh[pousr]_|glpat-|AKIA)[A-Za-z0-9_-]{8,}"), "SECRET"),
    (re.compile(r"/(home|Users)/[^/\s:'\"]+"), "HOME"),
    (re.compile(r"GPU-[0-9a-fA-F][0-9a-fA-F-]{7,}"), "GPU-ID"),
    (re.compile(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "ID"),
    (re.compile(r"(?i)(?<![a-z])((?:serial|unique)[ _]?(?:number|no|id)?(?:\(s\))?['\"]?\s*[:=]?\s*)['\"]?(?:0x)?"
                r"(?=[0-9a-z-]*\d)[0-9a-z-]{5,}"), r"\1ID"),
    (re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), "ADDRESS"),
    (re.compile(r"(?<![\d.])(?!127\.|0\.)(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"), "ADDRESS"),
    (re.compile(r"\b(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\b"), "ADDRESS"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "ADDRESS"),
]


class Scrubber:
    """`paths`: the replacement of each path; one without a slash is replaced only as a whole word."""

    def __init__(self, user, host, home, paths):
        longest_first = sorted({**paths, home: "HOME"}.items(), key=lambda pair: -len(pair[0]))
        self._paths = [(path, word) for path, word in longest_first if "/" in path and len(path) > 1]
        names = [(user, "USER"), (host, "HOST"), (host.split(".")[0], "HOST"),
                 *[(path, word) for path, word in longest_first if "/" not in path]]
        self._names = [(re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", re.IGNORECASE), word)
                       for name, word in names if len(name) > 1 and name.lower() not in PUBLIC_NAMES]

    def __call__(self, text):
        for path, word in self._paths:
            text = text.replace(path, word)
        text = COMMAND_LINE.sub(lambda line: line[1] + " ".join(GPU_OPTIONS.findall(line[2])), text)
        text = PROCESS.sub(r"\1OTHER\2", text)
        for pattern, word in [*RULES, *self._names]:
            text = pattern.sub(word, text)
        return text


def user_name():
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, in a container
        return ""


def of_this_machine(root, model, folder, programs=None):
    """`model`, `programs`: the user's file and folder, or nothing. `folder`: where this program keeps its files."""
    paths = {str(root): "ROOT", str(folder): "WORK", tempfile.gettempdir(): "TEMP"}
    if programs:
        paths.update({str(path): "PROGRAMS" for path in (programs, Path(programs).resolve())})
    if model:
        model = Path(model)
        paths.update({str(path): "MODEL" for path in (model, model.resolve(), model.name, model.stem)})
    return Scrubber(user_name(), socket.gethostname(), os.path.expanduser("~"), paths)
