#!/usr/bin/env python3
"""Renders the chat templates and expressions of the unit tests with Python's Jinja2, set up as
Hugging Face transformers does, and writes what comes out (or that it fails) beside them.

Run in a virtual environment that has jinja2:
    python3 tools/goldens/make_template_goldens.py
"""
import datetime
import json
import pathlib

import arguments

arguments.read(__name__, __doc__)

import jinja2
import jinja2.ext
import jinja2.sandbox

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "units" / "template" / "goldens"


class Raised(jinja2.exceptions.TemplateError):
    """What raise_exception() throws."""


class Generation(jinja2.ext.Extension):
    """{% generation %} marks the assistant's words; it only renders its body here."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    """Rejects names with a leading underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"underscore-prefixed attribute {name}")


def raise_exception(message):
    raise Raised(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def make_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    environment.globals["dict"] = lambda *args, **kwargs: dict(*args, **kwargs)
    environment.globals["namespace"] = Namespace
    return environment


def render(environment, source, variables):
    """The fields of a golden: output, or error (and raised when the template wanted it)."""
    try:
        return {"output": environment.from_string(source).render(**variables)}
    except Raised as error:
        return {"error": "TemplateError", "raised": str(error)}
    except Exception as error:  # pylint: disable=broad-except
        return {"error": f"{type(error).__name__}: {error}"}


def read_expressions():
    """One template a line; a line that starts with a quote is a JSON string."""
    for line in (FOLDER / "expressions.txt").read_text().split("\n"):
        if line and not line.startswith("#!"):
            yield json.loads(line) if line.startswith('"') else line


def write(name, content):
    (FOLDER / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def main():
    environment = make_environment()
    variables = json.loads((FOLDER / "variables.json").read_text())
    cases = [{"source": source, **render(environment, source, variables)}
             for source in read_expressions()]
    write("expressions.json", {"variables": variables, "cases": cases})

    conversations = json.loads((FOLDER / "conversations.json").read_text())
    families = []
    for path in sorted((FOLDER / "templates").glob("*.jinja")):
        for name, conversation in conversations.items():
            golden = render(environment, path.read_text(), conversation)
            families.append({"template": path.stem, "conversation": name, **golden})
    write("families.json", {"conversations": conversations, "cases": families})
    failures = sum("error" in case for case in families)
    print(f"jinja2 {jinja2.__version__}: {len(cases)} expressions, {len(families)} renderings "
          f"of which {failures} fail")


if __name__ == "__main__":
    main()
