import tempfile
import unittest
from pathlib import Path

import cycles

SMALLEST = {
    "lib.rs": "mod a;\npub mod b;\n#[cfg(test)]\nmod tests;\n",
    "a.rs": "",
    "b/mod.rs": "mod c;\nmod d;\n",
    "b/c.rs": "",
    "b/d.rs": "",
}


def found(files):
    """What is said of a crate of these files, and how many modules it has."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**SMALLEST, **files}.items():
            file = Path(folder, name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        said, count = cycles.check(Path(folder))
        return [line.replace(folder + "/", "") for lines in said for line in lines], count


class Cycles(unittest.TestCase):
    def test_one_way_is_no_circle(self):
        self.assertEqual(found({"a.rs": "use crate::b::c::X;\n"}), ([], 5))

    def test_two_files(self):
        said, _ = found({"b/c.rs": "use super::d::{self, Y};\n", "b/d.rs": "fn f(x: super::c::X) {}\n"})
        self.assertEqual(said[0], "b/mod.rs: its modules c, d import each other")
        self.assertIn("  c imports d: super::d::Y in b/c.rs", said)
        self.assertIn("  d imports c: super::c::X in b/d.rs", said)

    def test_a_file_and_a_folder_through_different_files(self):
        said, _ = found({"a.rs": "use crate::b::c::X;\n", "b/d.rs": "pub use crate::{a::{Y as Z}};\n"})
        self.assertEqual(said[0], "lib.rs: its modules a, b import each other")
        self.assertEqual(len(said), 3)

    def test_through_what_the_parent_passes_on(self):
        files = {"b/mod.rs": "mod c;\nmod d;\npub use c::X;\nuse self::d::Y;\n"}
        said, _ = found({**files, "b/d.rs": "use super::X;\n", "b/c.rs": "use super::Y;\n"})
        self.assertEqual(said[0], "b/mod.rs: its modules c, d import each other")

    def test_a_child_uses_its_parent_and_the_parent_its_child(self):
        said, _ = found({"b/mod.rs": "mod c;\nmod d;\nuse c::X;\npub struct P;\n", "b/c.rs": "use super::P;\n"})
        self.assertEqual(said, [])

    def test_tests_comments_and_texts_do_not_count(self):
        tests = "#[cfg(test)]\nmod tests {\n    use crate::b::c::X;\n    fn f() {\n    }\n}\n"
        one = "#[cfg(all(test, feature = \"x\"))]\npub(crate) use crate::b::d;\n"
        texts = "// crate::b::c\nconst A: &str = \"crate::b::c\";\n"
        said, _ = found({"a.rs": tests + one + texts, "b/c.rs": "use crate::a;\n"})
        self.assertEqual(said, [])
        said, _ = found({"a.rs": tests + "use crate::b;\n", "b/c.rs": "use crate::a;\n"})
        self.assertEqual(said[0], "lib.rs: its modules a, b import each other")

    def test_no_crate_and_no_folder_fail(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(cycles.main([folder]), 2)
        self.assertEqual(cycles.main([]), 1)


if __name__ == "__main__":
    unittest.main()
