#!/usr/bin/env python3
"""Usage: python3 ci/python/words.py FILE...

Finds words that plain English of the field does without, in pages in Markdown and in sources in Rust. Prints file,
line, the word and what to write instead. Exit code 1 if it finds any. It skips blocks of code, `code`, "quotations",
*emphasis* (words that the program prints), headings, and the first column of tables, which holds names. In sources it
reads literals with a space (others are names), except in modules of tests, and the comments of the folders in COMMENTS;
of the change log, what is unreleased. WORDS is the list, EXCEPTIONS has what is allowed, and why.
"""

import re
import sys
from pathlib import Path

# A sentence begins at the head of a paragraph, an item or a cell, behind a bold term, or behind another sentence.
BEGINS = r"(?:^(?:\*\*)?|[.!?:;]\**\s+|\*\*\s+)"
# A pattern, in which a space matches a line break as well, and what to write instead of its group or its match.
WORDS = (
    (r"\b(?:tells?|telling|told|untold)\b", "show, report or contain; distinguish"),
    (r"\b(?:says?|said|saying)\b", "show, report, set or state: persons say"),
    (r"\b(?:speaks?|spoke|spoken)\b", "use, as in 'uses MQTT 5': persons speak"),
    (r"\b(?:hears?|heard)\b", "receive: persons hear"),
    (r"\bso many\b", "the number, or that many"),
    (r"\bnobody\b", "no thread, no process, no node"),
    (r"\bwhoever\b", "the thread, process or user that"),
    (r"\bas it were\b", "nothing in its place"),
    (r"(?:^|(?<!\bthere)\s)(is no)\b(?! longer\b)", "is not"),
    (r"\bthere is no\b[^.:;]*\bhere\b", "what is missing, and where"),
    (r"\bof (?:its|their|our) own\b", "separate, or its own NOUN"),
    (r"\b(?:stands?|stood)\b(?! (?:for|still|out)\b)", "is"),
    (r"\bthe word to\b", "what it means"),
    (r"\bon whose\b", "which, in a sentence that begins with its subject"),
    (r"\b(?:has|have|had) gone\b", "has exited, was removed, is lost, disconnected"),
    (r"\bmend(?:s|ed|ing)?\b", "fix or repair"),
    (r"\bin the mean\b(?! time\b)", "on average"),
    (r"\blittle else than\b", "essentially"),
    (r"\bout of turn\b", "at the wrong time, out of sequence"),
    (r"\bsigns? of life\b", "heartbeat or progress"),
    (r"\b(?:be|been|is|are|was|were) had\b", "allocated, available or used"),
    (r"\bnext to nothing\b", "almost nothing, a negligible NOUN"),
    (r"\bfor ever\b", "forever, or without end"),
    (r"\banew\b", "again"),
)
# Where a sentence begins with one of these; comments, most of which are no sentences, may.
FIRST_WORDS = (
    (BEGINS + r"(Of)\b(?! course\b)", "the subject first"),
    (BEGINS + r"(What|Whose|Who)\b(?![^.]*\?)", "the subject first: name the thing"),
)
# The end of a file's path, the phrase that may hold one of these words, and why.
EXCEPTIONS = (
    ("src/bench/clock/cause.rs", "not told apart", "a value in jumps.csv, also of older results"),
    ("src/findings/recorded.rs", "is little else than the maximum", "a warning in older results"),
)
# Folders of sources whose comments are read as well.
COMMENTS = (
    "crates/platform/", "crates/queues/", "crates/rdma/", "crates/results/src/plot/", "crates/results/src/results/",
    "crates/results/src/stats/", "crates/rig/", "src/arguments/", "src/cli/clock/", "src/cli/memory/",
    "src/cli/queue/", "src/driver/", "src/terminal/",
)
# The options are the help of the program, whose blocks are text.
HELP = "docs/options.md"
# What is released is history: its first section alone is read.
CHANGELOG = "CHANGELOG.md"
# A comment of whole lines, another one, or a literal; of characters, so that a quotation mark begins none.
RUST = re.compile(
    r'(?m:(?P<comment>(?:^[ \t]*//[^\n]*\n)+))|//[^\n]*|b?r(?P<hashes>#*)"(?P<raw>.*?)"(?P=hashes)|'
    r'"(?P<text>(?:\\.|[^"\\])*)"|\'(?:\\[^\']+|[^\\\'])\'', re.DOTALL)
TESTS = re.compile(r"\n#\[cfg\((?:all\()?test[^\n]*\n(?:#[^\n]*\n)*mod \w+ \{")


def passages(text):
    """The paragraphs, items and cells to search, each with the number of its first line; others are left out."""
    found = []
    fenced = code = False
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        is_fence = re.match(r"\s*(?:```|~~~)", line)
        fenced ^= bool(is_fence)
        # Four spaces begin code behind an empty line, and an empty line does not end it.
        code = (code or not before) and (line.startswith("    ") or code and not line)
        if fenced or is_fence or code or line.startswith("#"):
            before = ""
            continue
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", re.sub(r"`[^`]+`", "`x`", line))
            found += [(number, cell.strip()) for cell in cells[2:]]
        elif item := re.match(r"\s*(?:- |\d+\. )", line):
            found.append((number, line[item.end():]))
        elif before and not before.startswith("|"):
            found[-1] = (found[-1][0], found[-1][1] + "\n" + line)
        elif line:
            found.append((number, line))
        before = line
    return found


def sources(text):
    """The literals of a source and its comments, as pairs of lists of passages."""
    literals, comments = [], []
    for match in RUST.finditer(TESTS.split(text, maxsplit=1)[0]):
        number = text.count("\n", 0, match.start()) + 1
        literal = match["text"] or match["raw"]
        if match["comment"]:
            plain = re.sub(r"(?m)^[ \t]*//[/!]? ?", "", match["comment"])
            comments += [(number + line - 1, passage) for line, passage in passages(plain)]
        elif literal and " " in literal:
            # A line that goes on, an escaped character, a value.
            plain = re.sub(r"\\\n\s*", "\n", literal)
            literals.append((number, re.sub(r"\\.|\{[^{}\n]*\}", "  ", plain)))
    return literals, comments


def blanked(passage):
    """A passage with x for what is quoted, at the same offsets."""
    quoted = (r"`[^`]+`", r"(?<=\])\([^)]*\)", r'"[^"]+"', r"(?<![*\w])\*(?=[^*\s])[^*]+\*(?![*\w])")
    for pattern in quoted:
        passage = re.sub(pattern, lambda match: re.sub(r"\S", "x", match[0]), passage)
    return passage


def excepted(page, passage, start, end):
    """The exception that allows the word between two offsets, if there is one."""
    for exception in EXCEPTIONS:
        phrase = r"\s+".join(map(re.escape, exception[1].split()))
        if page.endswith(exception[0]) and any(
                match.start() <= start and end <= match.end() for match in re.finditer(phrase, passage)):
            return exception
    return None


def parts(page, text):
    """The passages of a file, each with the number of its first line and the words to look for in it."""
    everything = WORDS + FIRST_WORDS
    if not page.endswith(".rs"):
        text = re.sub(r"(?m)^ +", "", text) if page.endswith(HELP) else text
        text = "\n## ".join(text.split("\n## ")[:2]) if page.endswith(CHANGELOG) else text
        return [(*passage, everything) for passage in passages(text)]
    literals, comments = sources(text)
    comments = comments if any(folder in page for folder in COMMENTS) else []
    return [(*literal, everything) for literal in literals] + [(*comment, WORDS) for comment in comments]


def search(page, text):
    """Findings as line, word and what to write instead, and the exceptions that were needed."""
    found, needed = [], set()
    for number, passage, words in parts(page, text):
        plain = blanked(passage)
        for pattern, instead in words:
            flags = 0 if pattern.startswith(BEGINS) else re.IGNORECASE
            for match in re.finditer(pattern.replace(" ", r"\s+"), plain, flags):
                start, end = match.span(match.lastindex or 0)
                if exception := excepted(page, passage, start, end):
                    needed.add(exception)
                else:
                    found.append((number + plain.count("\n", 0, start), " ".join(plain[start:end].split()), instead))
    return sorted(found), needed


def main(pages):
    if not pages:
        sys.exit(__doc__)
    count, needed = 0, set()
    for page in pages:
        found, exceptions = search(page, Path(page).read_text(encoding="utf-8"))
        needed |= exceptions
        count += len(found)
        for line, word, instead in found:
            print(f"{page}:{line}: {word}: write {instead}")
    for exception in EXCEPTIONS:
        if exception not in needed and any(page.endswith(exception[0]) for page in pages):
            print(f"{exception[0]}: remove the exception \"{exception[1]}\", which is not needed")
            count += 1
    print(f"{count} findings in {len(pages)} files")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
