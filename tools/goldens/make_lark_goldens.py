#!/usr/bin/env python3
"""Writes tests/units/grammar/data/lark.json: grammars in Lark's notation with texts that Lark itself
accepts and rejects.

    python3 -m venv VENV && VENV/bin/pip install lark==1.3.1
    VENV/bin/python tools/goldens/make_lark_goldens.py

Texts are those below and random changes of them. Lark reads them with Earley's parser and the lexer
`dynamic_complete`, by which a terminal may take any part that fits it.
"""
import json
import random
from pathlib import Path

import arguments

arguments.read(__name__, __doc__)

from lark import Lark
from lark.exceptions import LarkError

PATCH = r'''
start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.+)/? LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.+)/? LF
eof_line: "*** End of File" LF

%import common.LF
'''

# Grammar, its texts, and the characters that changes put in.
CASES = [
    (PATCH, ["*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** End Patch\n",
             "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ f\n-x\n+y\n z\n*** End Patch",
             "*** Begin Patch\n*** Delete File: a\n*** Delete File: b\n*** End Patch\n"], "*+-@ \na"),
    (r'''
        ?start: sum
        ?sum: product | sum "+" product -> add | sum "-" product -> sub
        ?product: atom
            | product "*" atom  -> mul   // as in Lark's tutorial
            | product "/" atom  -> div
        ?atom: NUMBER -> number | "-" atom -> neg | NAME -> var | "(" sum ")"
        %import common.CNAME -> NAME
        %import common.NUMBER
        %import common.WS_INLINE
        %ignore WS_INLINE
     ''', ["1 + 2*(3 - x)", "-a", "1.5e3/ .5", " y_1 *2", "((1))"], "+-*/() 1.ex"),
    (r'''
        ?start: value
        ?value: object | array | string | SIGNED_NUMBER -> number | "true" | "false" | "null"
        array  : "[" [value ("," value)*] "]"
        object : "{" [pair ("," pair)*] "}"
        pair   : string ":" value
        string : ESCAPED_STRING
        %import common.ESCAPED_STRING
        %import common.SIGNED_NUMBER
        %import common.WS
        %ignore WS
     ''', ['{"a": [1, -2.5e1, true], "b\\"c": {}}', "[]", ' [ null ,"x" ]\n', "false"], '{}[],:"\\ 1a'),
    (r'''
        start: "SELECT"i COLUMN ("," COLUMN)* "FROM"i TABLE [where] ";"?
        where: "WHERE"i COLUMN ("=" | ">" | "<=") INT
        COLUMN.2: /[a-z]+/
        TABLE: "users" | "orders"
        %import common (INT, WS)
        %ignore WS
        %ignore /--[^\n]*/
     ''', ["select a, b from users where a <= 12;", "SELECT id FROM orders",
           "Select x -- y\nFrom users"], "a,;=<> \n1-A"),
    (r'''
        start: DATE~2..3 "!"~2
        DATE: DIGIT~4 "-" MONTH
        MONTH: "0" "1".."9" | "1" "0".."2"
        %import common.DIGIT
     ''', ["2024-012025-12!!", "1999-101999-111999-09!!"], "01289-!"),
    (r'''
        # Comments of both kinds.
        start: (item "\n")+
        item: "\t"* word (" " word)~1..2 [","] | "\x41" /\d+\/\d+/
        word: /[a-z\u00e9]+/ | "\u20ac" | "\"" | "\\"
     ''', ["a b\n", "\t\tab c d,\n", "A12/3\n\u00e9 \u20ac\n", '" \\\n'], "ab \n\t,A1/\u00e9\"\\"),
    (r'''
        start: list
        list: list "," item | list ";" | item
        item: NAME | HEXDIGIT+
        NAME: LETTER (LETTER | "_")*
        %import common.LETTER
        %import common.HEXDIGIT
     ''', ["a", "a,b_c;", "0f;;,x", "9,9"], "a,;_0gz"),
    (r'''
        start: (comment | string | FLOAT | SIGNED_INT | DECIMAL | WORD NEWLINE)+
        comment: C_COMMENT | CPP_COMMENT "\n" | SQL_COMMENT "\n" | SH_COMMENT "\n"
        string: ESCAPED_STRING
        %import common (C_COMMENT, CPP_COMMENT, SQL_COMMENT, SH_COMMENT, ESCAPED_STRING)
        %import common (FLOAT, SIGNED_INT, DECIMAL, WORD, NEWLINE)
     ''', ["/* a **/", "// x\n", "--\n#y\n", "1.5e-3", "+12", ".5", "ab\r\n\n", '"a\\"b"', "/**/1e5"],
     '/*-#".e+1a\n\r\\'),
]
CHANGES = 400
KEPT = 40  # of each verdict


def changed(rng, text, alphabet):
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice([0, 1, 1, 3]))
        text = text[:at] + rng.choice(["", rng.choice(alphabet), text[at:end] * 2]) + text[end:]
    return text


def accepts(parser, text):
    try:
        parser.parse(text)
        return True
    except LarkError:
        return False


def main():
    rng, out = random.Random(1), []
    for grammar, texts, alphabet in CASES:
        parser = Lark(grammar, parser="earley", lexer="dynamic_complete")
        missed = [text for text in texts if not accepts(parser, text)]
        assert not missed, missed
        more = sorted({changed(rng, rng.choice(texts), alphabet) for _ in range(CHANGES)} - {*texts})
        rng.shuffle(more)
        verdicts = {text: accepts(parser, text) for text in more}
        out.append({"grammar": grammar,
                    "accepted": texts + [text for text in more if verdicts[text]][:KEPT],
                    "rejected": [text for text in more if not verdicts[text]][:KEPT]})
        print(len(out[-1]["accepted"]), len(out[-1]["rejected"]))
    path = Path(__file__).resolve().parents[2] / "tests/units/grammar/data/lark.json"
    path.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
