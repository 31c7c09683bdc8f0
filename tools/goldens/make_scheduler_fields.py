#!/usr/bin/env python3
"""Makes tests/units/diffusion/data/scheduler_fields.json: the fields that each scheduler class of
diffusers has and their defaults, from the signature of its __init__; null stands for none, for
infinities and for fields without a default. Reads the sources, since some classes need
packages that are not there when they are imported.

Run from the repository root (wrote the committed file with diffusers 0.42.1):
    venv/bin/python tools/goldens/make_scheduler_fields.py tests/units/diffusion/data
"""

import ast
import importlib.util
import json
import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/units/diffusion/data"))


def init_of(node):
    return next((part for part in node.body
                 if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)


def defaults_of(init):
    arguments = init.args.args[1:]
    values = [None] * (len(arguments) - len(init.args.defaults)) + init.args.defaults
    pairs = [*zip(arguments, values), *zip(init.args.kwonlyargs, init.args.kw_defaults)]
    return {argument.arg: literal(value) for argument, value in pairs}


def literal(node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def main(out):
    package = importlib.util.find_spec("diffusers")
    folder = pathlib.Path(package.submodule_search_locations[0]) / "schedulers"
    fields = {}
    for file in sorted(folder.glob("scheduling_*.py")):
        if file.stem.endswith("_flax"):
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or not node.name.endswith("Scheduler"):
                continue
            init = init_of(node)
            if init is not None:
                fields[node.name] = defaults_of(init)
    rows = (f"{json.dumps(name)}: {json.dumps(fields[name])}" for name in sorted(fields))
    (out / "scheduler_fields.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="ascii")


if __name__ == "__main__":
    main(pathlib.Path(ARGUMENTS.folder))
