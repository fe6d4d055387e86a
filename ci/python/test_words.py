"""Tests of the words that pages and sources do without."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import words


def found(text, page="page.md"):
    """Line and word of each finding."""
    return [(line, word) for line, word, _ in words.search(page, text)[0]]


class Words(unittest.TestCase):
    def test_each_word_is_found_and_each_has_advice(self):
        for text, word in (("The file tells the rate.", "tells"), ("A port that is told.", "told"),
                           ("The help says more.", "says"), ("It speaks MQTT 5.", "speaks"),
                           ("A subscriber hears it.", "hears"), ("As so many messages.", "so many"),
                           ("Nobody waits.", "Nobody"), ("It names whoever takes it.", "whoever"),
                           ("It is, as it were, done.", "as it were"), ("This is no proof.", "is no"),
                           ("There is no clock here.", "There is no clock here"), ("A CPU of its own.", "of its own"),
                           ("They have queues of their own.", "of their own"), ("It stands below.", "stands"),
                           ("That is the word to a shape.", "the word to"), ("A CPU on whose node it is.", "on whose"),
                           ("The peer has gone.", "has gone"),
                           ("Mend the link.", "Mend"), ("2 us in the mean.", "in the mean"),
                           ("It is little else than noise.", "little else than"), ("Sent out of turn.", "out of turn"),
                           ("No sign of life came.", "sign of life"), ("It cannot be had here.", "be had"),
                           ("It costs next to nothing.", "next to nothing"), ("It waits for ever.", "for ever"),
                           ("It is posted anew.", "anew"), ("Of the queues, two are ours.", "Of"),
                           ("It ends. Of each, the first counts.", "Of"),
                           ("What it prints is short.", "What"), ("Who changes it tests it.", "Who")):
            self.assertEqual(found(f"Text.\n\n{text}\n"), [(3, word)], text)
            self.assertTrue(all(advice for _, _, advice in words.search("page.md", text)[0]))

    def test_plain_words_pass(self):
        for text in ("Of course it runs.", "There is no authentication.", "It is no longer used.",
                     "RATE stands for a number.", "What is measured?", "It depends on what it prints.",
                     "A generator stood still.", "It stands out.", "Its own buffer.", "Untolerable.",
                     "In the mean time it runs."):
            self.assertEqual(found(text), [], text)

    def test_a_phrase_is_found_over_a_line_break_with_its_line(self):
        self.assertEqual(found("# Head\n\nA thread has a CPU of\nits own, and the\nfile says so.\n"),
                         [(3, "of its own"), (5, "says")])
        self.assertEqual(found("- It ends.\n  Of these, one\n- What it does is this."), [(2, "Of"), (3, "What")])

    def test_code_quotations_and_names_are_skipped(self):
        for text in ("Text:\n\n    it says so\n\n    and tells\n", "```\nit says so\n```\n", "The line `it says so`.",
                     'The message "it says so, and\ntells" appears.', "*Not told apart* and *told\napart*.",
                     "| what it says | it |\n| --- | --- |\n| told | `says` |\n", "## What it says\n",
                     "[page](tells.md#what-it-says)"):
            self.assertEqual(found(text), [], text)

    def test_text_beside_code_is_searched(self):
        for text, line in (("Text:\n\n    code\n\nIt says so.\n", 5), ("```\ncode\n```\nIt says so.\n", 4),
                           ("`code` says so.", 1), ("**Bold** says so.", 1), ("Text\n    goes on, and says so.", 2),
                           ("| name | it says so |", 1), ("| a | b | says `x\\|y` |", 1), ("- item\n  says so", 2)):
            self.assertEqual(found(text), [(line, "says")], text)

    def test_a_word_begins_a_sentence_behind_a_bold_term_and_in_a_cell(self):
        self.assertEqual(found("- **Term.** What it is comes first."), [(1, "What")])
        self.assertEqual(found("- **What it is**"), [(1, "What")])
        self.assertEqual(found("| name | What it is |"), [(1, "What")])
        self.assertEqual(found("| name | Of these two |\n| name | of these two |"), [(1, "Of")])

    def test_an_exception_allows_its_phrase_on_its_page_only(self):
        text = "As Arm's manual\nsays, it is ordered. It says so.\n"
        exception = ("docs/method.md", "Arm's manual says", "a person wrote it")
        with mock.patch.object(words, "EXCEPTIONS", (exception,)):
            self.assertEqual(words.search("docs/method.md", text)[1], {exception})
            self.assertEqual(found(text, "docs/method.md"), [(2, "says")])
            self.assertEqual(found(text, "docs/queue.md"), [(2, "says"), (2, "says")])

    def test_every_exception_has_its_reason(self):
        self.assertTrue(all(len(exception) == 3 and all(exception) for exception in words.EXCEPTIONS))


class Sources(unittest.TestCase):
    def test_literals_are_searched_over_their_lines(self):
        for text, hit in (('fail("it says so")', (1, "says")), ('x\n    "{} it \\\n     says so"', (3, "says")),
                          ('#[error("one\\n it says so: \\"{0}\\"")]', (1, "says")),
                          ('r#"it "says" so, and tells"#', (1, "tells")),
                          ('\'"\'; "it says so"', (1, "says")), ('"// it says so"', (1, "says")),
                          ('fn f() {} // "quoted\n"it says so"', (2, "says")), ('"What it prints"', (1, "What"))):
            self.assertEqual(found(text, "a.rs"), [hit], text)

    def test_names_values_code_and_tests_are_skipped(self):
        for text in ('"says"', 'format!("{told} rows, {says:?}")', '"use `says so`"', "fn says() { told(); }",
                     "// it says so\n",
                     'f("short");\n#[cfg(test)]\nmod tests {\n    "it says so"\n}\n', "'a' is said"):
            self.assertEqual(found(text, "src/a.rs"), [], text)

    def test_comments_of_some_folders_are_searched(self):
        text = ("/// It has\n/// its own, and\n    //! says `so`, that\n/// tells. What it is.\n"
                "fn f() {} // it says so\n")
        with mock.patch.object(words, "COMMENTS", ("crates/rig/",)):
            self.assertEqual(found(text, "crates/rig/src/a.rs"), [(3, "says"), (4, "tells")])
            self.assertEqual(found(text, "crates/bench/src/a.rs"), [])

    def test_the_help_in_the_page_of_options_is_searched(self):
        text = "# Options\n\n    Usage: x\n\n    --a  Set it, which\n         says so\n"
        self.assertEqual(found(text, "docs/options.md"), [(6, "says")])
        self.assertEqual(found(text, "docs/other.md"), [])
        text = "    Options:\n          --a\n              Set it\n\n              [as\n              it says]\n"
        self.assertEqual(found(text, "docs/options.md"), [(6, "says")])


class Changelog(unittest.TestCase):
    def test_only_what_is_unreleased_is_searched(self):
        text = "# Changelog\n\n## 0.2 (unreleased)\n\n- It says so.\n\n## 0.1\n\n- It tells.\n"
        self.assertEqual(found(text, "CHANGELOG.md"), [(5, "says")])
        self.assertEqual(found(text, "docs/page.md"), [(5, "says"), (9, "tells")])


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name) / "page.md"

    def run_on(self, text):
        self.page.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            return words.main([str(self.page)]), printed.getvalue()

    def test_it_prints_file_line_word_and_advice_and_fails(self):
        code, printed = self.run_on("Text.\nIt says so.\n")
        self.assertEqual(code, 1)
        self.assertRegex(printed, r"page\.md:2: says: write \w+")
        self.assertIn("1 findings in 1 files", printed)

    def test_it_passes_plain_words(self):
        self.assertEqual(self.run_on("It reports the rate.\n")[0], 0)
        self.assertEqual(self.run_on("")[0], 0)

    def test_an_exception_that_is_not_needed_fails(self):
        with mock.patch.object(words, "EXCEPTIONS", (("page.md", "it says", "a person"), ("x.md", "it tells", "no"))):
            self.assertEqual(self.run_on("As it says.\n")[0], 0)
            code, printed = self.run_on("It is short.\n")
        self.assertEqual(code, 1)
        self.assertIn('remove the exception "it says"', printed)
        self.assertNotIn("it tells", printed)

    def test_it_needs_pages(self):
        with self.assertRaises(SystemExit):
            words.main([])


if __name__ == "__main__":
    unittest.main()
