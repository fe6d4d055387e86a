"""No two files import each other, and no two folders.

Usage: cycles.py FOLDER...    each the src folder of a crate

Within each module, the modules below it must not import each other in a circle, each taken with all that is below it.
A module may use what its parent defines, and a parent what its children define. Tests may import everything. Exit code
1 with the imports that make each circle; 2 where a folder has no lib.rs.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|pub\(in [^)]*\)""",
    re.DOTALL | re.VERBOSE,
)
TEST = re.compile(r"^#\[cfg\((?:all\()?(?:test|loom)\b[^\n]*\n(?:#\[[^\n]*\n)*(?P<item>[^\n]*)", re.MULTILINE)
CHILD = re.compile(r"^(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE)
AT = re.compile(r'^#\[path = "([^"]+)"\]\n(?:#\[[^\n]*\n)*(?:pub(?:\([^)]*\))? )?mod (\w+);', re.MULTILINE)
USE = re.compile(r"^\s*(?P<public>pub(?:\([^)]*\))? )?use (?P<tree>[^;]*);", re.MULTILINE)
PATH = re.compile(r"(?<![\w:])(?:crate|self|super)(?:\s*::\s*\w+)+")


def code_of(text):
    """Without comments, literals, and what is compiled for tests only."""
    text = NOT_CODE.sub(" ", text)
    while found := TEST.search(text):
        end = found.end()
        if "{" in found["item"] and "}" not in found["item"]:
            end = text.find("\n}", end) + 2
        elif not found["item"].rstrip().endswith((";", "}", ",")):
            end = text.find(";", end) + 1
        text = text[: found.start()] + text[max(end, found.end()) :]
    return text


def leaves(tree):
    """The paths of a tree of imports, each as a list of names, and the name that it is imported under."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, name = tree.partition(" as ")
        names = [part.strip() for part in path.split("::") if part.strip()]
        if names and names[-1] == "self":
            names.pop()
        return [(names, name.strip() or (names[-1] if names else ""))]
    head, _, rest = tree.partition("{")
    start = [part.strip() for part in head.split("::") if part.strip()]
    found, depth, item = [], 0, ""
    for letter in rest[: rest.rindex("}")]:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            found, item = found + [item], ""
        else:
            item += letter
    return [(start + path, name or start[-1]) for part in found + [item] if part.strip() for path, name in leaves(part)]


class Crate:
    """The modules of a crate by their path (a tuple of names), and what each of them imports."""

    def __init__(self, folder):
        self.files, self.codes, self.names = {}, {}, defaultdict(dict)
        self.read(folder / "lib.rs", folder, ())

    def read(self, file, folder, module):
        self.files[module] = file
        text = file.read_text()
        self.codes[module] = code = code_of(text)
        at = {name: file.parent / path for path, name in AT.findall(text)}
        for found in USE.finditer(code):
            for path, name in leaves(found["tree"]):
                self.names[module][name] = path
        for name in CHILD.findall(code):
            for child in (at.get(name), folder / f"{name}.rs", folder / name / "mod.rs"):
                if child and child.exists():
                    self.read(child, folder / name, (*module, name))
                    break
            else:
                raise FileNotFoundError(f"{file}: the module {name} has no file")

    def resolve(self, module, path, depth=0):
        """The module that defines what a path in this module leads to; None where that is another crate's."""
        if not path or depth > 16:
            return None
        first, rest = path[0], path[1:]
        if first == "crate":
            at = ()
        elif first == "self":
            at = module
        elif first == "super":
            at = module[:-1]
            while rest and rest[0] == "super":
                at, rest = at[:-1], rest[1:]
        elif (*module, first) in self.files:
            at = (*module, first)
        else:
            return None
        while rest:
            if (*at, rest[0]) in self.files:
                at, rest = (*at, rest[0]), rest[1:]
                continue
            through = self.names[at].get(rest[0])
            if through and through != path:
                beyond = self.resolve(at, through, depth + 1)
                # An import of another crate's, or of an enum's variants in the same file.
                return beyond if beyond is not None or through[0] not in ("crate", "self", "super") else at
            break
        return at

    def imports(self):
        """(importing module, imported module, the path), once each."""
        for module, code in self.codes.items():
            paths = [path for found in USE.finditer(code) for path, _ in leaves(found["tree"])]
            rest = USE.sub("", code)
            paths += [re.split(r"\s*::\s*", found) for found in PATH.findall(rest)]
            for path in sorted(set(map(tuple, paths))):
                to = self.resolve(module, list(path))
                if to is not None and to != module:
                    yield module, to, "::".join(path)


def circles(edges):
    """The strongly connected parts of more than one node."""
    reach = {}

    def reached(node):
        if node not in reach:
            seen, todo = set(), [node]
            while todo:
                for following in edges.get(todo.pop(), ()):
                    if following not in seen:
                        seen.add(following)
                        todo.append(following)
            reach[node] = seen
        return reach[node]

    found = []
    for node in sorted(edges):
        part = sorted(other for other in reached(node) if node in reached(other))
        if len(part) > 1 and part not in found:
            found.append(part)
    return found


def check(folder):
    """The circles of a crate, each as lines of text."""
    crate = Crate(folder)
    siblings = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    for module, to, path in crate.imports():
        common = 0
        while common < min(len(module), len(to)) and module[common] == to[common]:
            common += 1
        # A module and what is below it.
        if common == min(len(module), len(to)):
            continue
        siblings[module[:common]][module[common]][to[common]].add((module, to, path))
    said = []
    for parent, edges in sorted(siblings.items()):
        for part in circles(edges):
            lines = [f"{crate.files[parent]}: its modules {', '.join(part)} import each other"]
            for one in part:
                for other in part:
                    imports = sorted(edges[one].get(other, ()))
                    for module, _, path in imports:
                        lines.append(f"  {one} imports {other}: {path} in {crate.files[module]}")
            said.append(lines)
    return said, len(crate.files)


def main(folders):
    count = wrong = 0
    for folder in folders:
        if not (Path(folder) / "lib.rs").exists():
            print(f"cycles.py: {folder} has no lib.rs", file=sys.stderr)
            return 2
        said, files = check(Path(folder))
        count += files
        wrong += len(said)
        for lines in said:
            print("\n".join(lines), file=sys.stderr)
    print(f"{count} modules of {len(folders)} crates, {wrong} circles")
    return 1 if wrong or not folders else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
