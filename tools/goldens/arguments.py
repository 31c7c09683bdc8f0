"""The arguments of a script of this folder. A script reads them above its imports of PyTorch and others, so that
--help works where those packages are missing."""

import argparse


def read(name, doc, *wanted):
    """`name`: the script's __name__; a script that another one imports has no arguments, None. `doc`: its docstring,
    whose first paragraph --help prints. wanted: (name, meaning); a name that ends in "..." stands for any number."""
    if name != "__main__":
        return None
    parser = argparse.ArgumentParser(description=doc.split("\n\n")[0],
                                     epilog="The head of the file says which packages it needs.")
    for argument, meaning in wanted:
        many = {"nargs": "*"} if argument.endswith("...") else {}
        parser.add_argument(argument.rstrip("."), help=meaning, **many)
    return parser.parse_args()
