"""Removes personal and machine data from texts: names, folders, addresses, serial numbers, secrets."""
import getpass
import os
import pwd
import re
import socket
import tempfile
from pathlib import Path

# Of the kernel's command line, options that matter to a GPU stay; others name disks and keys.
GPU_OPTIONS = re.compile(r"(?:amdgpu|nvidia|radeon|nouveau|amd_iommu|intel_iommu|iommu|pci|pcie_aspm|mitigations)[.=]\S*")
COMMAND_LINE = re.compile(r"(?i)((?:kernel )?command line: )(.*)")
# A fault's line names the process whose work was on the card: ours, or what else the user runs. Such names may have
# spaces, and 15 characters at most.
OURS = r"(?!(?:rbee|opcheck|llm-worker|sd-worker|\w+_bench)\b)"
PROCESSES = [
    (re.compile(rf"(?i)\b((?:process|thread) (?:name )?){OURS}(?! |pid )[^\n]{{1,20}}?( pid)\b"), r"\1OTHER\2"),
    (re.compile(rf"(\bpid='?<?\w+>?'?, name=){OURS}[^,\n]+"), r"\1OTHER"),
]
# Names that tell nothing, and words that stand in drivers' texts.
PUBLIC_NAMES = {"root", "user", "amd", "gpu", "nvidia", "localhost", "linux", "debian", "ubuntu"}

SECRET_WORD = (r"(?:[_-](?:keys?|token|pass|pwd|auth|cookies?)|api ?keys?|secrets?|passw(?:or)?ds?|passphrases?|"
               r"credentials?)")
# A variable whose whole value goes, with spaces in it too.
SECRET_VARIABLE = re.compile(rf"(?i)(?:{SECRET_WORD}|_tokens)(?:$|_)")
VALUE = r"""('[^'\n]*'|"[^"\n]*"|\[[^\]\n]*\]|[^\s'"]+)"""
URL = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*)://([^\s/@'\"<>]*@)?(\[[0-9a-f:.%]+\]|[^\s/:@'\"<>,;)\]]*)([^\s'\"<>,;)\]]*)")
PUBLIC_HOST = re.compile(r"(?i)^(?:(?:[\w-]+\.)*(?:github\.com|huggingface\.co|amd\.com|nvidia\.com|debian\.org|ubuntu\.com|"
                         r"cmake\.org|llvm\.org|gnu\.org|python\.org|kernel\.org|freedesktop\.org)|localhost|127\.[\d.]+|"
                         r"0\.0\.0\.0|\[::1?\])$")
# Folders of every system, and routes of our workers. Others may be named after people, clients or projects.
PUBLIC_FOLDERS = (r"(?:usr|lib(?:32|64)?|bin|sbin|etc|proc|sys|devices|nix/store|opt/(?:rocm|amdgpu|nvidia)[\w.-]*|"
                  r"dev/(?:kfd|dri|dxg|nvidia|shm|null)[\w-]*|v[12]|api|sdapi|page)(?![\w.-])")
HEX4 = r"[0-9a-fA-F]{1,4}"

RULES = [
    (re.compile(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"), "SECRET"),
    # A header's value is the rest of its line.
    (re.compile(r"(?i)((?:proxy-)?authorization['\"]?\s*[:=]\s*)[^\n'\"]+"), r"\1SECRET"),
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{6,}"), r"\1SECRET"),
    # Variables or fields with a secret's name. A number of tokens is none.
    (re.compile(rf"""(?i)(\w*{SECRET_WORD}['"]?\s*[=:]\s*){VALUE}"""), r"\1SECRET"),
    (re.compile(rf"""(?i)(\w*_tokens['"]?\s*[=:]\s*)(?!\d+(?:\.\d+)?(?![\w-])){VALUE}"""), r"\1SECRET"),
    (re.compile(r"(?i)([?&](?:\w*token|\w*key|sig|signature|auth)=)[^\s&'\"]+"), r"\1SECRET"),
    # Texts that begin like keys of known services.
    (re.compile(r"\b(?:nvapi-|hf_|api_org_|sk-|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|AIza|xox[a-z]-|pypi-|npm_|gsk_|r8_|"
                r"tskey-)[A-Za-z0-9_-]{8,}"), "SECRET"),
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"), "SECRET"),
    (re.compile(r"(?i)\b[a-z]:\\Users\\[^\\\s:'\"]+"), "HOME"),
    (re.compile(r"/(home|Users)/[^/\s:'\"]+"), "HOME"),
    (re.compile(r"(?<![\w/.~])~[a-z_][\w-]*(?=/)"), "HOME"),
    (re.compile(rf"""(['"])/(?!{PUBLIC_FOLDERS})[^/'"\n]+/[^'"\n]*\1"""), r"\1FOLDER\1"),
    (re.compile(rf"(?:(?<![\w/.~)\]-])|(?<=\s-[A-Za-z]))/(?!{PUBLIC_FOLDERS})[\w.@+-]+/[^\s:'\",;)]*"), "FOLDER"),
    (re.compile(r"GPU-[0-9a-fA-F][0-9a-fA-F-]{7,}"), "GPU-ID"),
    (re.compile(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "ID"),
    (re.compile(r"\b[0-9a-fA-F]{32}\b"), "ID"),  # a machine's, or a UUID without its dashes
    (re.compile(r"(?i)(?<![a-z])((?:serial|unique|asset[ _]tag|s/n)[ _]?(?:number|no|id)?(?:\(s\))?['\"]?\s*[:=]?\s*)"
                r"['\"]?(?:0x)?(?=[0-9a-z-]*\d)[0-9a-z-]{5,}"), r"\1ID"),
    # Of network cards; InfiniBand's have 20 numbers.
    (re.compile(r"(?<![\w:-])[0-9a-fA-F]{2}(?:([:-])[0-9a-fA-F]{2})(?:\1[0-9a-fA-F]{2}){4,}(?![\w:-])"), "ADDRESS"),
    (re.compile(r"(?<![\d.])(?!127\.|0\.)(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"), "ADDRESS"),
    (re.compile(rf"(?<![\w:])(?:{HEX4}:){{7}}{HEX4}(?![\w:])"), "ADDRESS"),
    (re.compile(rf"(?<![\w:])(?:{HEX4}:){{1,7}}(?::{HEX4}){{1,6}}(?![\w:])"), "ADDRESS"),
    (re.compile(rf"(?<![\w:])[23fF][0-9a-fA-F]{{3}}:(?:{HEX4}:){{0,6}}:(?![\w:])"), "ADDRESS"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "ADDRESS"),
    (re.compile(r"(?i)(?<![\w.-])[a-z0-9][\w-]*(?:\.[\w-]+)*\.(?:local|lan|home|internal|intranet|corp|localdomain|"
                r"home\.arpa|ts\.net)(?![\w-])"), "HOST"),
]


def without_private_parts(url):
    """The scheme and host of one that everybody knows, with its path; of others the scheme."""
    scheme, login, host, rest = url.groups()
    if login:
        return f"{scheme}://SECRET@HOST"
    if scheme.lower() == "file" and not re.match(rf"/{PUBLIC_FOLDERS}", rest):
        return f"{scheme}://FOLDER"
    return url.group() if not host or PUBLIC_HOST.match(host) else f"{scheme}://HOST"


class Scrubber:
    """`paths`: the replacement of each path; one without a slash is replaced only as a whole word. `users`: names."""

    def __init__(self, users, host, home, paths):
        longest_first = sorted({**paths, home: "HOME"}.items(), key=lambda pair: -len(pair[0]))
        self._paths = [(path, word) for path, word in longest_first if "/" in path and len(path) > 1]
        names = [*[(user, "USER") for user in sorted(users, key=len, reverse=True)], (host, "HOST"),
                 (host.split(".")[0], "HOST"), *[(path, word) for path, word in longest_first if "/" not in path]]
        self._names = [(re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", re.IGNORECASE), word)
                       for name, word in names if len(name) > 1 and name.lower() not in PUBLIC_NAMES]

    def __call__(self, text):
        for path, word in self._paths:
            text = text.replace(path, word)
        text = COMMAND_LINE.sub(lambda line: line[1] + " ".join(GPU_OPTIONS.findall(line[2])), text)
        text = URL.sub(without_private_parts, text)
        for pattern, word in [*PROCESSES, *RULES, *self._names]:
            text = pattern.sub(word, text)
        return text


def user_names(root):
    """Of who runs this, who called sudo, and whose the sources are: login and full names."""
    try:
        names = {getpass.getuser()}
    except (KeyError, OSError):  # a number without a name, in a container
        names = set()
    names |= {os.environ.get(variable, "") for variable in ("USER", "LOGNAME", "SUDO_USER", "DOAS_USER")}
    for uid in (os.getuid(), os.stat(root).st_uid):
        try:
            names.add(pwd.getpwuid(uid).pw_name)
        except KeyError:
            pass
    for name in list(names):
        try:
            names.add(pwd.getpwnam(name).pw_gecos.split(",")[0])
        except KeyError:
            pass
    return names - {""}


def of_this_machine(root, model, folder, programs=None):
    """`model`, `programs`: the user's file and folder, or nothing. `folder`: where this program keeps its files."""
    paths = {str(root): "ROOT", str(folder): "WORK", tempfile.gettempdir(): "TEMP"}
    if programs:
        paths.update({str(path): "PROGRAMS" for path in (programs, Path(programs).resolve())})
    if model:
        model = Path(model)
        paths.update({str(path): "MODEL" for path in (model, model.resolve(), model.name, model.stem)})
    return Scrubber(user_names(root), socket.gethostname(), os.path.expanduser("~"), paths)
