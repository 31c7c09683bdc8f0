"""Runs .githooks/commit-msg over the commits made since the hook's last change, on the line of first parents: older
ones had another rule. lint.py calls it. Where there is no git, or no commit, it finds nothing."""

import os
import subprocess
import sys
import tempfile

HOOK = ".githooks/commit-msg"


def git(root, *words):
    """What git prints, without its last line break; None if it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def checked(root):
    """(commits, newest first; whether the clone is shallow). Without those that have no parent here: a copy of the
    tree may begin with a commit of its own, and a shallow clone's oldest one looks as if it added every file."""
    top = git(root, "rev-parse", "--show-toplevel")
    if not top or not os.path.samefile(top, root):
        return [], False
    shallow = git(root, "rev-parse", "--is-shallow-repository") == "true"
    since = git(root, "log", "--first-parent", "-1", "--format=%H", "--", HOOK)
    if not since:
        return [], shallow
    commits = [*(git(root, "rev-list", "--first-parent", f"{since}..HEAD") or "").split(), since]
    return [one for one in commits if git(root, "rev-parse", "--verify", "-q", f"{one}^")], shallow


def check(root):
    """(commit, problem) of each whose message the hook refuses."""
    for commit in checked(root)[0]:
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.write(git(root, "log", "-1", "--format=%B", commit) or "")
            file.flush()
            done = subprocess.run([sys.executable, os.path.join(root, HOOK), file.name], capture_output=True, text=True)
        if done.returncode:
            yield commit[:8], done.stderr.strip()


def said(root):
    """What lint's last line says about them: empty if there are none."""
    commits, shallow = checked(root)
    return f", {len(commits)} commits{' of a shallow clone' if shallow else ''}" if commits else ""
