#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/write_results.py on made-up answers: tables, marked blocks, --check, what is missing,
what went otherwise than promised."""

import contextlib
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/gpu"), str(ROOT / "tools/bench")]

import answer as answers
import write_results

HEAD = {"commit": "abc1234", "card": "NVIDIA H200", "driver": "580.1",
        "versions": {"torch": "2.11.0", "cuda": "13.0"}, "date": "2026-11-26T10:00:00Z",
        "finished": True}
GIB = 2**30


def bits_row(model="lstm", budget=50, launch="none", verdict="equal", **more):
    ran = {"peak_bytes": 512, "predicted_peak_bytes": 512, "allocations_outside": 0}
    return {"model": model, "budget": budget, "launch": launch, "verdict": verdict,
            **({} if verdict in ("not legal", "does not fit") else ran), **more}


def planned(case, budget, step, predicted, peak, **more):
    return {"case": case, "run": "planned", "budget": budget, "verdict": "ran", "step_s": step,
            "predicted_s": predicted, "peak_bytes": int(peak * GIB),
            "predicted_peak_bytes": int(peak * GIB), "allocations_outside": 0, "out_bytes": GIB,
            "in_bytes": 2 * GIB, "plan_s": 5.0, "costs": "steps of 31GiB", **more}


def peer(case, mode, step, peak, **more):
    return {"case": case, "run": "hugging_face", "mode": mode, "verdict": "ran", "step_s": step,
            "peak_bytes": int(peak * GIB), **more}


def eager(case, step, peak, verdict="equal", **more):
    return {"case": case, "run": "eager", "verdict": verdict, "step_s": step,
            "peak_bytes": int(peak * GIB), **more}


LARGE = [
    eager("llama1b", 0.294, 53.1, repeat_equal=180, repeat_compared=600),
    planned("llama1b", "40GiB", 0.3, 0.291, 39.8, hidden_permille=999),
    planned("llama1b", "31GiB", 0.318, 0.318, 30.9, hidden_permille=940),
    eager("llama1b", 0.37, 31.6, checkpointing=True),
    peer("llama1b", "checkpointing", 0.406, 31.7), peer("llama1b", "compile:0.2", 0.392, 25.5),
    {"case": "llama1b", "run": "hugging_face", "mode": "eager", "verdict": "CUDA out of memory"}]


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / write_results.ANSWERS).mkdir(parents=True)
        (self.root / "tools/docs").mkdir(parents=True)
        for name, blocks in write_results.BLOCKS.items():
            marked = "".join(f"<!-- results:{block} begin -->\nold figures\n"
                             f"<!-- results:{block} end -->\n\n" for block in blocks)
            (self.root / name).write_text(f"# Typed in\n\n{marked}last line\n", encoding="utf-8")

    def put(self, kind, rows, name=None, **head):
        path = self.root / write_results.ANSWERS / f"{name or kind}.json"
        answers.write_answer(path, {"what": kind, "command": f"python3 {kind}.py", **HEAD, **head,
                                    "rows": rows})

    def call(self, *arguments):
        """(exit code, errors)"""
        said = io.StringIO()
        command = ["write_results.py", "--root", str(self.root), *arguments]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stderr(said):
            return write_results.main(), said.getvalue()

    def page(self, name=write_results.OUT):
        return (self.root / name).read_text(encoding="utf-8")

    def write(self):
        self.assertEqual(self.call(), (0, ""))
        return self.page()

    def row_of(self, page, text):
        """The first table row that begins so."""
        return next(line for line in page.splitlines() if line.startswith(f"| {text}"))


class Missing(Pages):
    def test_without_answers_nothing_was_measured(self):
        page = self.write()
        promised = re.findall(r"^\| (?!promised)(.*?) \| (.*?) \| \[", page, re.MULTILINE)
        self.assertEqual({found for _, found in promised}, {"not measured on this commit"})
        self.assertEqual(len(promised), len(write_results.summary_rows(
            write_results.join_answers({}))))
        self.assertNotRegex(page, "\n```")
        readme = self.page("README.md")
        self.assertIn("<!-- results:large begin -->\nNot measured on this commit.\n"
                      "<!-- results:large end -->", readme)
        self.assertNotIn("old figures", readme)

    def test_a_kind_without_answer_is_not_measured(self):
        self.put("memcheck", [{"launch": "none", "copies": 3, "exit": 0, "errors": 0,
                               "good": True}])
        page = self.write()
        self.assertIn("1 of 1 as promised", self.row_of(page, "no memory error"))
        self.assertIn("not measured on this commit", self.row_of(page, "bits of plain libtorch"))

    def test_a_model_that_was_not_run_is_named(self):
        self.put("bits", [bits_row()])
        page = self.write()
        self.assertIn("**11 of 12 models not measured**", self.row_of(page, "bits of plain"))
        self.assertIn("| `gpt2` | not measured |", page)

    def test_a_part_that_was_cut_off_is_named_until_it_is_finished(self):
        self.put("bits", [bits_row()], parts={"bits_lstm": "cut off", "bits_gpt2": "finished"})
        self.assertIn("**1 part not finished**", self.write())
        self.put("bits", [bits_row(budget=70)], name="bits_lstm", date="2026-11-26T11:00:00Z")
        page = self.write()
        self.assertNotIn("not finished", page)
        self.assertIn("2 of 2 equal", page)


class Tables(Pages):
    def test_ranks_stand_beside_what_users_set(self):
        ran = {"case": "llama8b", "ranks": 2, "verdict": "ran"}
        plan = {**ran, "run": "planned", "costs": "profile", "allocations_outside": 0,
                "predicted_peak_bytes": 33 * GIB}
        self.put("ranks", [
            {**plan, "budget": "34GiB", "step_s": 0.5, "predicted_s": 0.48, "arena_bytes": 34 * GIB,
             "peak_bytes": 33 * GIB},
            {**ran, "run": "peer", "mode": "fsdp2", "step_s": 0.6, "peak_bytes": 55 * GIB,
             "reserved_bytes": 66 * GIB},
            {**ran, "run": "peer", "mode": "ddp", "verdict": "CUDA out of memory"},
            {**plan, "budget": "14GiB", "step_s": 0.9, "predicted_s": 0.9, "arena_bytes": 14 * GIB,
             "peak_bytes": 13 * GIB}])
        page = self.write()
        self.assertIn("**1 NOT**", self.row_of(page, "ranks train in their budgets"))
        block = self.page("tools/docs/ranks.md")
        self.assertEqual(self.row_of(block, "FSDP2 "),
                         "| FSDP2 | 55.0 GiB | 0.600 s |  |  |  | 66.0 GiB |")
        self.assertIn("| CUDA out of memory |", self.row_of(block, "DDP"))
        self.assertEqual(self.row_of(block, "**planned, 34GiB"),
                         "| **planned, 34GiB** | 34.0 GiB | 0.500 s | 0.480 s (-4.0 %) | profile | "
                         "yes |  |")
        self.assertIn("| **NO** |", self.row_of(block, "**planned, 14GiB"))
        self.assertLess(block.index("| FSDP2"), block.index("| **planned"))

    def test_bits_are_counted_and_grouped(self):
        self.put("bits", [bits_row(budget=100), bits_row(budget=50),
                          bits_row(budget=40, verdict="does not fit"),
                          bits_row("gpt2", 50, "whole", "not legal")])
        page = self.write()
        self.assertIn("2 of 2 equal, 1 refused (no CUDA graph is possible), 1 do not fit as expected", page)
        self.assertIn("| `lstm` | equal: 100, 50 %; does not fit: 40 % |", page)
        self.assertIn("| `gpt2` |  | refused: 50 % |", page)
        self.assertNotIn("Not as promised", page)

    def test_other_bits_are_shown(self):
        self.put("bits", [bits_row(), bits_row(budget=70, verdict="DIFFERENT: loss of step 3")])
        page = self.write()
        self.assertIn("1 of 2 equal, **1 DIFFERENT**", self.row_of(page, "bits of plain libtorch"))
        self.assertIn("| `lstm` | equal: 50 %; **DIFFERENT**: 70 % |", page)
        self.assertIn("Not as promised:", page)
        self.assertIn("| `lstm` | 70 | none | DIFFERENT: loss of step 3 |", page)
        self.assertIn("**1 DIFFERENT**", self.page("README.md"))
        self.assertIn("**1 DIFFERENT**", self.page("tools/docs/results.md"))

    def test_a_later_answer_does_not_hide_other_bits(self):
        self.put("bits", [bits_row(verdict="DIFFERENT: loss")])
        self.put("bits", [bits_row()], name="bits_again", date="2026-11-27T10:00:00Z")
        self.assertIn("1 of 2 equal, **1 DIFFERENT**", self.write())

    def test_what_was_not_run_is_replaced(self):
        row = planned("llama1b", "25250758656B", 0.37, 0.37, 23.5, smallest=True)
        self.put("large", [{"case": "llama1b", "run": "planned", "budget": "25250000000B",
                            "smallest": True, "costs": "steps of 31GiB",
                            "verdict": "not run: the time given was up"}])
        self.assertIn("not run: the time given was up", self.write())
        self.put("large", [row], name="large_again", date="2026-11-27T10:00:00Z")
        page = self.write()
        self.assertNotIn("not run", page)
        self.assertIn("| planned in 23.52 GiB, the smallest | 23.50 GiB |", page)

    def test_a_refusal_or_a_model_without_a_reason_is_shown(self):
        self.put("bits", [bits_row(verdict="not legal"), {
            "model": "vit_autocast", "budget": 0, "verdict": "FAILED: no plan of it"}])
        page = self.write()
        self.assertIn("0 of 2 equal, **1 FAILED**, **1 NOT LEGAL**", page)
        self.assertIn("| `vit_autocast` | 0 |  | FAILED: no plan of it |", page)

    def test_a_peak_that_differs_is_shown(self):
        self.put("users", [bits_row(predicted_peak_bytes=511), bits_row(budget=70)])
        self.assertIn("1 of 2 runs, **1 NOT**", self.row_of(self.write(), "the measured peak"))

    def test_memory_and_faults(self):
        self.put("memory", [
            {"check": "steady", "model": "gpt2", "launch": "none", "samples": 9, "steps": [6, 90],
             "used_bytes": [2**20, 2**21], "good": False},
            {"check": "neighbour", "model": "gpt2", "launch": "none", "arena_bytes": 2**20,
             "outside_bytes": 2**21, "exit": 0, "refused_exit": 4, "smaller_exit": 0,
             "good": True}])
        self.put("faults", [
            {"check": "signals", "what": "SIGTERM", "expected": 143, "exit": 143, "good": True},
            {"check": "delays", "what": "x", "model": "lstm", "launch": "whole", "seed": 0,
             "expected": 0, "exit": 1, "good": False},
            {"check": "waits", "model": "lstm", "waits": 204, "removed": 12, "differ": 7,
             "failed": 0, "hung": 0, "good": True}])
        page = self.write()
        self.assertIn("6 to 90 | 1.0 MiB to 2.0 MiB | **NO** |", page)
        self.assertIn("0 of 1 as promised, **1 NOT**", self.row_of(page, "device memory is const"))
        self.assertIn("| signals | SIGTERM | 143 | 143 | yes |", page)
        self.assertIn("| `lstm` |  | **NO**: `whole`, exit 1 |", page)
        self.assertIn("| `lstm` | 204 | 12 | 7 | 0 | 0 | yes |", page)

    def test_large_models_by_case(self):
        self.put("large", LARGE)
        page = self.write()
        self.assertIn("| planned in 40 GiB | 39.80 GiB | 0.300 s | 0.291 s | -3.0 % | "
                      "steps of 31GiB | 99.9 % | 1.00 GiB | 2.00 GiB | 5 s | yes |  |", page)
        self.assertIn("equal (180 of 600 repeat)", self.row_of(page, "plain libtorch (C++)"))
        # The budget whose own steps gave the costs predicts nothing.
        self.assertIn("1 of 1 within 5 %: -3.0 % to -3.0 %", page)
        self.assertIn("1 of 2 runs: 94.0 to 99.9 %", page)
        self.assertIn("| Hugging Face, plain training |  | CUDA out of memory |", page)
        self.assertIn("**Llama 3.1 8B shape, batch 1 x 4096** |", page)

    def test_large_models_in_deterministic_mode_have_a_table_of_their_own(self):
        self.put("deterministic", [eager("llama1b", 0.3, 53, "DIFFERENT: parameter x")])
        page = self.write()
        self.assertIn("0 of 1 equal, **1 DIFFERENT**", self.row_of(page, "the same for large"))
        self.assertIn("DIFFERENT: parameter x", page.split("## Large models, deterministic")[1])

    def test_small_steps_show_each_run(self):
        row = bits_row(model="lstm", budget=60, step_ms=4.0, predicted_ms=4.2, eager_ms=16.0)
        self.put("small", [row, {**row, "verdict": "ran", "step_ms": 4.4}])
        self.assertIn("| `lstm` | 60 % | `none` | 4.20 ms | 4.00, 4.40 ms | +0.0 % | 16.00 ms | "
                      "equal |", self.write())

    def test_each_section_names_command_and_machine(self):
        self.put("large", LARGE[:1])
        self.put("large", LARGE[1:], name="more", commit="def5678")
        section = self.write().split("## Large models\n")[1].split("## ")[0]
        self.assertEqual(section.count("```\npython3 large.py\n```"), 2)
        self.assertIn("Commit def5678; NVIDIA H200; driver 580.1; torch 2.11.0, cuda 13.0; "
                      "2026-11-26.", section)


class Blocks(Pages):
    def test_the_readme_has_what_a_newcomer_compares(self):
        self.put("large", LARGE)
        self.write()
        text = self.page("README.md")
        self.assertTrue(text.startswith("# Typed in\n") and text.endswith("\nlast line\n"))
        names = re.findall(r"^\| (?:\*\*)?(.*?)(?:\*\*)? \| [\d.]+ GiB", text, re.MULTILINE)
        # Hugging Face's checkpointing is slower than that by hand, and takes more.
        self.assertEqual(names, [
            "plain libtorch (C++)", "planned in 40 GiB", "gradient checkpointing by hand (C++)",
            "planned in 31 GiB", "Hugging Face, torch.compile, memory budget 0.2"])
        self.assertIn("Measured on NVIDIA H200, commit abc1234 (2026-11-26).", text)

    def test_the_demonstration(self):
        row = {"model": "gpt2", "verdict": "equal", "unplanned_bytes": GIB,
               "budget_bytes": GIB // 2, "peak_bytes": GIB // 2, "out_bytes": 2**20,
               "in_bytes": 2**20, "predicted_s": 2.6, "step_s": 2.5, "eager_s": 2.4, "commands": 1665}
        self.put("demo", [row], card="2 cores, no GPU used", driver="")
        self.write()
        self.assertIn("| planned, 1665 commands | 512.0 MiB of 512.0 MiB | 1.0 MiB | 1.0 MiB | "
                      "2.500 s | 2.600 s | equal |", self.page("tools/docs/results.md"))

    def test_a_page_without_its_markers_is_refused(self):
        (self.root / "README.md").write_text("nothing\n", encoding="utf-8")
        code, said = self.call()
        self.assertEqual(code, 2)
        self.assertIn("README.md: found the marked blocks (none), expected each of", said)

    def test_a_file_that_is_no_answer_is_refused(self):
        path = self.root / write_results.ANSWERS / "bits.json"
        for text, words in (("{", "bits.json: "), ('{"what": "bits"}', "found no field 'commit'"),
                            (json.dumps({"what": "other", "command": "", "rows": [], **HEAD}),
                             "found the kind 'other'")):
            path.write_text(text, encoding="utf-8")
            code, said = self.call()
            self.assertEqual(code, 2)
            self.assertIn(words, said)


class Python(Pages):
    RUN = {"peak_bytes": 30 * GIB, "outside_bytes": 2**20, "trace_ns": 48_000_000}
    ROWS = [{"check": "bits", "case": "llama", "good": True, "verdict": "equal"},
            {"check": "bits", "case": "dbrx", "good": True, "verdict": "refused"},
            {"check": "turns", "case": 0, "good": True, "verdict": "equal"},
            {"check": "decorator", "case": "1B plain", "good": True, "verdict": "ran",
             "step_ms": 341.2, "device_bytes": 65 * GIB},
            {"check": "trainer", "case": "31GiB", "good": True, "verdict": "ran", "step_ms": 390.4,
             "device_bytes": 33 * GIB, "predicted_peak_bytes": 30 * GIB, "run": RUN}]

    def test_counts_bits_and_shows_times(self):
        self.put("python", self.ROWS)
        page = self.write()
        self.assertIn("2 of 2 equal, 1 refused", self.row_of(page, "bits of plain PyTorch"))
        self.assertEqual(self.row_of(page, "decorator | 1B plain"),
                         "| decorator | 1B plain | 341 ms | 65.0 GiB |  |  |  |  |")
        self.assertEqual(self.row_of(page, "Trainer | 31GiB"),
                         "| Trainer | 31GiB | 390 ms | 33.0 GiB | 30.0 GiB | yes | 1.0 MiB | 48 ms |")

    def test_wraps_a_long_command_as_a_shell_takes_it(self):
        names = " ".join(f"sizes.case_{k}" for k in range(12))
        self.put("python", self.ROWS, command=f"python3 python.py {names}")
        page = self.write()
        shown = page[page.index("python3 python.py"):].split("\n```")[0]
        self.assertLessEqual(max(map(len, shown.splitlines())), 100)
        self.assertEqual(shown.replace(" \\\n    ", " "), f"python3 python.py {names}")

    def test_says_what_is_not_as_promised(self):
        bad = {"check": "bits", "case": "t5", "good": False, "verdict": "wrong"}
        more = {**self.ROWS[-1], "run": {**self.RUN, "peak_bytes": 31 * GIB}}
        failed = {"check": "decorator", "case": "8B", "good": False, "verdict": "no memory"}
        self.put("python", [*self.ROWS[:-1], bad, more, failed])
        page = self.write()
        self.assertIn("2 of 3 equal, 1 refused, 1 **wrong**",
                      self.row_of(page, "bits of plain PyTorch"))
        self.assertIn("| **WRONG** | 1 | `t5` |", page)
        self.assertIn("| 31.0 GiB | **NO** |", page)
        self.assertIn("| decorator | 8B | **no memory** |", page)


class Check(Pages):
    def test_names_the_page_that_differs(self):
        self.put("large", LARGE)
        self.put("ranks", [{"case": "llama8b", "ranks": 2, "verdict": "ran", "run": "peer",
                            "mode": "fsdp2", "step_s": 0.6, "peak_bytes": int(30.9 * GIB)}])
        self.write()
        self.assertEqual(self.call("--check"), (0, ""))
        for name in (write_results.OUT, *write_results.BLOCKS):
            before = self.page(name)
            (self.root / name).write_text(before.replace("30.9", "29.9"), encoding="utf-8")
            code, said = self.call("--check")
            self.assertEqual((code, said.count("error: ")), (1, 1))
            self.assertIn(f"error: {name}: ", said)
            (self.root / name).write_text(before, encoding="utf-8")

    def test_writes_nothing(self):
        self.put("large", LARGE)
        self.assertEqual(self.call("--check")[0], 1)
        self.assertFalse((self.root / write_results.OUT).exists())
        self.assertIn("old figures", self.page("README.md"))

    def test_without_answers_compares_only_the_page_of_results(self):
        self.assertIn("RESULTS.md", self.call("--check")[1])
        page = write_results.make_pages(self.root)[0][write_results.OUT]
        (self.root / write_results.OUT).write_text(page, encoding="utf-8")
        self.assertEqual(self.call("--check"), (0, ""))
        self.assertIn("old figures", self.page("README.md"))

    def test_writing_twice_changes_nothing(self):
        self.put("bits", [bits_row()])
        first = self.write()
        self.assertEqual(self.write(), first)


if __name__ == "__main__":
    unittest.main()
