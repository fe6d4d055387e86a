#!/usr/bin/env python3
"""Usage: ci/python/links.py PAGE...

Checks that all links of these pages in Markdown lead to a file, and to a heading that is there. Exit code 1 if one does
not, or if there are fewer than 50.
"""

import os
import re
import sys
from pathlib import Path


def anchors(text):
    """The names of the headings of a page, as MkDocs and forges make them."""
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    headings = re.findall(r"(?m)^#+ +(.+?) *$", text)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def broken_links(pages):
    """What is wrong, and how many links there are."""
    broken, links = [], 0
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", Path(page).read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            name, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
            if not os.path.exists(path):
                broken.append(f"{page}: there is no {path}")
            elif anchor and anchor not in anchors(Path(path).read_text(encoding="utf-8")):
                broken.append(f"{page}: {path} has no heading #{anchor}")
    return broken, links


if __name__ == "__main__":
    there = [page for page in sys.argv[1:] if os.path.exists(page)]
    wrong, count = broken_links(there)
    if wrong or count < 50:
        print("\n".join(wrong), file=sys.stderr)
        sys.exit(f"{len(wrong)} of {count} links lead nowhere; at least 50 are expected")
    print(f"{count} links of {len(there)} pages lead somewhere")
