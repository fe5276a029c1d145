#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers of measuring scripts: what they keep of their rows, and how tests/gpu/all.py chooses
parts and joins their answers."""

import json
import os
import pathlib
import sys
import tempfile
import unittest
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/gpu"), str(ROOT / "tools/bench")]

import all as driver
import answer as answers
import bits_table
import demo
import gpu_rows
import parts

HEAD = {"commit": "abc1234", "card": "NVIDIA H200", "driver": "580.1", "versions": {},
        "date": "2026-11-26T10:00:00Z", "finished": True}


class Answers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_an_answer_is_whole_after_each_row(self):
        path = os.path.join(self.folder, "bits.json")
        answer = answers.Answer(path, {"what": "bits", **HEAD})
        answer.add({"model": "a|b"})
        with open(path, encoding="utf-8") as file:
            seen = json.load(file)
        self.assertEqual((seen["rows"], seen["finished"]), ([{"model": "a|b"}], False))
        answer.finish()
        with open(path, encoding="utf-8") as file:
            self.assertTrue(json.load(file)["finished"])
        answers.open_answer(None, "bits", "no program").add({})  # without --out nothing is written

    def test_the_command_has_no_paths_of_the_machine(self):
        script = str(ROOT / "tests/gpu/all.py")
        self.assertEqual(answers.command_line([script, "--out", "/tmp/x", "--only", "bits",
                                               "--program=/tmp/y", "--hugging-face", ""]),
                         "python3 tests/gpu/all.py --only bits --hugging-face ''")

    def test_rows_of_bits_are_short(self):
        options = SimpleNamespace(allow=bits_table.EVERYTHING, runs=1, in_steps=None,
                                  nondeterministic=True)
        row = bits_table.answer_row(options, {
            "model": "lstm", "budget": 50, "launch": "none", "verdict": "equal", "step_ms": 1.23456,
            "losses": [1, 2],
            "repeats": {"equal": 3, "compared": 4, "unrepeatable_ops": ["x"] * 99}})
        self.assertEqual(row, {"model": "lstm", "budget": 50, "launch": "none", "verdict": "equal",
                               "step_ms": 1.235, "repeat_equal": 3, "repeat_compared": 4})
        self.assertEqual(bits_table.kind_of(options), "users")

    def test_rows_of_large_models_have_eager_training_apart(self):
        timeline = {"hidden_copies_permille": 990, "own_times_step_ns": 3e8,
                    "ready_times_step_ns": 3e8, "step_ns": 3e8, "stall_ns": {"d2h": 1}}
        rows = gpu_rows.answer_rows("llama1b", {
            "budget": "1B", "smallest": True, "verdict": "ran", "step_s": 0.3, "path": "/tmp/p",
            "timeline": timeline, "unplanned": {"identical": False, "difference": "loss",
                                                "step_ns": 3e8, "peak_bytes": 9}})
        self.assertEqual([(row["run"], row["verdict"]) for row in rows],
                         [("planned", "ran"), ("eager", "DIFFERENT: loss")])
        self.assertEqual(rows[0]["hidden_permille"], 990)
        self.assertNotIn("/tmp", json.dumps(rows))

    def test_the_demonstration_is_a_row(self):
        run = {"steps": 20, "step_ns": 2.5e9,
               "unplanned": {"identical": False, "difference": "loss", "step_ns": 2e9}}
        plan = {"budget_bytes": 5, "unplanned_bytes": 9, "counts": {"commands": 7},
                "predicted": {"peak_bytes": 5, "out_bytes": 1, "in_bytes": 2, "step_ns": 2e9}}
        row = demo.demo_row({"plan": plan, "run": run})
        self.assertEqual((row["verdict"], row["commands"]), ("DIFFERENT: loss", 7))


class Driver(unittest.TestCase):
    def chosen(self, *only):
        options = SimpleNamespace(only=only, program="p", faults=__file__, session=__file__,
                                  at_once=4)
        self.assertEqual(parts.find_unknown(options), [])
        every = (parts.parts_alone, parts.parts_python, parts.parts_large, parts.parts_together)
        return [name for some in every for name, kind, _ in some(options)
                if parts.chosen_by(options, name, kind) is not None]

    def test_words_choose_parts_by_name_and_kind(self):
        self.assertEqual(self.chosen("memory"), ["neighbour", "steady_memory", "host_memory"])
        self.assertEqual(self.chosen("large"), ["large_llama1b", "large_lora", "large_llama8b"])
        self.assertEqual(self.chosen("hugging_face_lora"), ["hugging_face_lora"])
        self.assertEqual(len(self.chosen("bits", "users")), 2 * len(bits_table.MODELS))

    def test_large_models_run_only_when_named(self):
        everything = self.chosen("")
        self.assertIn("memcheck", everything)
        self.assertFalse([name for name in everything
                          if "large" in name or "hugging" in name or "python" in name])
        self.assertEqual(self.chosen("python"), ["python_models", "python_trainer", "python_turns",
                                                 "python_bits_1", "python_bits_2"])

    def test_answers_are_joined_by_word(self):
        with tempfile.TemporaryDirectory() as folder:
            joined = driver.Answers(folder, [("bits_a", "bits", "bits"), ("bits_b", "bits", "bits"),
                                             ("bits_c", "bits", "bits")])
            for name, state in (("bits_a", "finished"), ("bits_b", "cut off")):
                written = {"what": "bits", "command": "c", **HEAD, "rows": [{"model": name}]}
                joined.add(SimpleNamespace(name=name, word="bits", kind="bits", state=state,
                                           answer=lambda written=written: written))
            answer = json.loads((pathlib.Path(folder) / "bits.json").read_text(encoding="utf-8"))
        self.assertEqual(answer["parts"], {"bits_a": "finished", "bits_b": "cut off",
                                           "bits_c": "not begun"})
        self.assertEqual([row["model"] for row in answer["rows"]], ["bits_a", "bits_b"])
        self.assertFalse(answer["finished"])

    def test_a_test_of_the_session_that_failed_stays_failed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "session.json")
            tests = [{"name": "A", "result": "COMPLETED"},
                     {"name": "B", "result": "COMPLETED", "failures": [{}]}]
            with open(f"{path}.gtest", "w", encoding="utf-8") as file:
                json.dump({"testsuites": [{"name": "Session", "testsuite": tests}]}, file)
            driver.write_session("no program", path)
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)["rows"]
        self.assertEqual([row["verdict"] for row in rows], ["completed", "failed"])


if __name__ == "__main__":
    unittest.main()
