"""Shared by the tests of pages: Chromium's path and playwright. Importing this ends the program with
status 77 and a line that says why when there is no Chromium or no Python package `playwright`."""

import shutil
import sys

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    print("SKIP: the Python package playwright is not installed")
    sys.exit(77)
if BROWSER is None:
    print("SKIP: chromium is not installed")
    sys.exit(77)

__all__ = ["BROWSER", "expect", "sync_playwright"]
