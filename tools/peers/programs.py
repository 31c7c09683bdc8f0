"""Runs our own programs."""

import shlex
import subprocess


class Failed(Exception):
    """Nothing can be measured; says why."""


def run(command):
    """Standard output. The first word may be a command with arguments of its own."""
    try:
        done = subprocess.run(shlex.split(command[0]) + command[1:], capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failed(f"{shlex.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout
