"""Runs commands with a time limit each, and keeps their output, scrubbed, in a folder of text files."""
import os
import resource
import shlex
import signal
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MOST_CHARACTERS = 2_000_000  # of a step; the end is kept
TOO_LONG = -1000  # in the place of an exit status
SECONDS_TO_PRINT = 5

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # of programs that a fault ends


@dataclass
class Done:
    status: int  # exit status, minus a signal's number, or TOO_LONG
    text: str  # as printed, only for this program
    seconds: float

    @property
    def ok(self):
        return self.status == 0

    def reason(self):
        if self.status == TOO_LONG:
            return "no end within its time"
        return f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"


def run(command, seconds, variables=None, folder=None):
    """Output includes standard error. Processes that the command left running are ended too."""
    begin = time.monotonic()
    environment = {key: value for key, value in {**os.environ, **(variables or {})}.items() if value is not None}
    with tempfile.TemporaryFile() as printed:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
                                       env=environment, cwd=folder, start_new_session=True)
        except OSError as error:
            return Done(127, f"{command[0]}: {error.strerror}\n", 0)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = TOO_LONG
            abort_group(process)
        except KeyboardInterrupt:
            end_group(process)
            raise
        end_group(process)
        printed.seek(0)
        return Done(status, printed.read().decode(errors="replace"), time.monotonic() - begin)


def abort_group(process):
    """Our programs then print the kernels under way, one of which may hang."""
    try:
        os.killpg(process.pid, signal.SIGABRT)
        process.wait(SECONDS_TO_PRINT)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        pass  # it waits for a driver that does not answer


class Journal:
    """`scrub`: applied to every text before it is written."""

    def __init__(self, folder, scrub):
        self.folder = Path(folder)
        self._scrub = scrub
        self._count = 0

    def write(self, name, text):
        self._count += 1
        text = self._scrub(text)
        if len(text) > MOST_CHARACTERS:
            text = "[the beginning is left out]\n" + text[-MOST_CHARACTERS:]
        (self.folder / f"{self._count:02d}-{name}.txt").write_text(text)

    def step(self, name, command, seconds, variables=None):
        """Runs a command, and tells the screen."""
        print(f"   {name} ...", end=" ", flush=True)
        done = run([str(word) for word in command], seconds, variables)
        print("ok" if done.ok else done.reason(), f"({done.seconds:.0f} s)", flush=True)
        shown = " ".join(f"{key}={value}" for key, value in (variables or {}).items() if value is not None)
        words = " ".join(shlex.quote(str(word)) for word in command)
        end = "ok" if done.ok else done.reason()
        self.write(name, f"$ {shown} {words}\n{done.text}\n{end}, {done.seconds:.1f} s\n")
        return done

    def pack(self, file):
        """All of it in one file, without the owner's names."""
        def anonymous(member):
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            return member

        with tarfile.open(file, "w:xz") as archive:
            archive.add(self.folder, arcname="first-card", filter=anonymous)
