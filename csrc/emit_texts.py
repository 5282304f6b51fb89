"""Prints emit_texts.h: the definitions that a row's formula may call, as data for emit_rows.c. Run by setup.py.

    python emit_texts.py > emit_texts.h

Emitted C must stand alone, so it carries the functions that libm lacks. They are written once, in special_*.c and
scalar.h, and cut from there whenever the extension is built: so there is no copy to keep in step, and no file that a
wheel would have to carry and find again; an sdist has csrc. Definitions, and not files, since a static function that
nothing calls is a warning. Relies on the layout of those files: a definition begins in the first column.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent

# Functions of libm that IEEE 754 and C99 define to the last bit: it is all the same who evaluates them, and when.
EXACT = ["ceil", "copysign", "fabs", "floor", "fma", "fmod", "frexp", "ldexp", "remainder", "rint", "sqrt", "trunc"]
KEYWORDS = {"for", "if", "return", "sizeof", "while"}


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def definitions(text: str) -> list[tuple[str, str]]:
    """(name, text) of each definition of a file, with the comment that stands on it; made static."""
    found, comment, item = [], "", ""
    for line in text.splitlines(keepends=True):
        if not item and (comment.count("/*") > comment.count("*/") or line.startswith("/*")):
            comment += line
        elif not item and (not line.strip() or (line.startswith("#") and not re.match(r"#define \w+\(", line))):
            comment = ""
        else:
            item += line
            code = without_comments(item).strip()
            if code.startswith("#") or (code[-1] in "};" and code.count("{") == code.count("}")):
                if re.match(r"[\w ]+\([\w ,*\[\]]*\);$", code) is None:  # a declaration
                    found.append((name_of(code), comment + re.sub(r"^(?!static |#)", "static ", item)))
                comment = item = ""
    assert not item, f"a definition has no end: {item}"
    return found


def name_of(code: str) -> str:
    match = re.match(r"#define (\w+)|[^(\[=]*?(\w+)\s*[(\[=]", code)
    assert match, code
    return match[1] or match[2]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("??", '?" "?') + '"'


def main() -> None:
    families = sorted(path.name for path in HERE.glob("special_*.c"))
    files = ["special_blocks.h", "special_tables.h", *families, "scalar.h"]
    items = [(name, "") for name in EXACT]
    items += [item for file in files for item in definitions((HERE / file).read_text(encoding="utf-8"))]
    number = {name: i for i, (name, _) in enumerate(items)}
    assert len(number) == len(items), "two definitions have one name"
    rounded: list[bool] = []  # calls, itself or through others, a function of libm whose last bit is its own
    print("/* emit_texts.h: made by emit_texts.py; do not edit. */\n\nstatic const emit_item items[] = {")
    for i, (name, text) in enumerate(items):
        code = without_comments(text)
        used = sorted({number[word] for word in re.findall(r"[A-Za-z_]\w*", code) if word in number} - {i})
        assert all(k < i for k in used), f"{name} uses {[items[k][0] for k in used if k > i]}, which come after it"
        calls = set(re.findall(r"([A-Za-z_]\w*)\s*\(", code)) - KEYWORDS - {name}
        rounded.append(any(rounded[k] for k in used) or any(call not in number for call in calls))
        needs = "".join(f"{k}, " for k in used)
        print(f'    {{"{name}", {int(rounded[i])}, (const short[]){{{needs}-1}}, (const char *const[]){{')
        for line in text.splitlines(keepends=True):
            print(f"        {quoted(line)},")
        print("        NULL}},")
    print("};")


if __name__ == "__main__":
    main()
