"""`rbee` and `python -m rbee`: this process becomes the program."""

import os
import sys

from . import program


def main():
    os.execv(program(), ["rbee", *sys.argv[1:]])


if __name__ == "__main__":
    main()
