#!/usr/bin/env python3
"""Usage: ci/python/heredocs.py SCRIPT...

Prints the places where shell scripts hold a program in Python. Exit code 1 if there is one.
"""

import re
import sys
from pathlib import Path

PYTHON = re.compile(r"python[\d.]*[\"']?(?=\s)")
FROM_INPUT = re.compile(r"\s+(-(\s|$)|<<)")
HEREDOC = re.compile(r"(?<!<)<<-?\s*\\?[\"']?[A-Za-z_]")
WORDS = re.compile(r"\s-\w*c\s+(.*)")


def is_open(text):
    """Whether a quote is not closed in its line."""
    quote = None
    for at, letter in enumerate(text):
        if quote is None and letter in "\"'" and text[at - 1:at] != "\\":
            quote = letter
        elif letter == quote and (quote == "'" or text[at - 1] != "\\"):
            quote = None
    return quote is not None


def found(text):
    """The numbers of lines at which a program in Python begins."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for behind in lines[number:]:
            if not line.endswith("\\"):
                break
            line = line[:-1] + behind
        command = PYTHON.search(line)
        if line.lstrip().startswith("#") or not command:
            continue
        behind = line[command.end():]
        words = WORDS.match(behind)
        if FROM_INPUT.match(behind) and HEREDOC.search(line) or words and (is_open(words[1]) or "$(" in words[1]):
            yield number


if __name__ == "__main__":
    places = [f"{path}:{number}" for path in sys.argv[1:] for number in found(Path(path).read_text(encoding="utf-8"))]
    print("".join(f"{place}: holds Python\n" for place in places), end="")
    sys.exit(bool(places))
