#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/upgrade/compare_ops.py on made-up lists, and on the list of this build's torch
(STOWAGE_OP_LIST, the program)."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "tools/upgrade")]

import compare_ops


def op(schema="aten::a(Tensor x) -> Tensor", kernels=("cpu", "meta"), by="meta", ours=()):
    return {"schema": schema, "kernels": list(kernels), "results_by": by, "ours": list(ours)}


class Compare(unittest.TestCase):
    def call(self, old, new):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for version, ops in (("2.11.0", old), ("2.15.0", new)):
                paths.append(os.path.join(folder, version))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(ops if isinstance(ops, str)
                               else json.dumps({"torch": version, "ops": ops}))
            said = io.StringIO()
            with contextlib.redirect_stdout(said), \
                    mock.patch.object(sys, "argv", ["compare_ops.py", *paths]):
                compare_ops.main()
        return said.getvalue()

    def test_equal_lists_ask_for_nothing(self):
        page = self.call({"aten.a": op(ours=["table"])}, {"aten.a": op(ours=["table"])})
        self.assertIn("# From torch 2.11.0 to torch 2.15.0\n", page)
        self.assertIn("0 changes touch something of ours", page)
        self.assertNotIn("- [ ]", page)

    def test_what_touches_ours_says_where_to_look(self):
        old = {"aten.gone": op(ours=["table", "shape rule"]), "aten.b": op(ours=["operand rule"]),
               "aten.c": op(kernels=["cpu"], by="rule", ours=["shape rule"]), "aten.d": op()}
        new = {"aten.b": op("aten::b(Tensor x, int y) -> Tensor", ours=["operand rule"]),
               "aten.c": op(by="rule", ours=["shape rule"]), "aten.d": op(by="nothing", kernels=[])}
        page = self.call(old, new)
        self.assertIn("4 changes touch something of ours", page)
        self.assertIn("- [ ] `aten.gone`: its row in ir/graph/op_table.cpp; its rule in "
                      "runtime/capture/ops/shapes", page)
        self.assertIn("`aten::b(Tensor x, int y) -> Tensor`: its check in "
                      "runtime/capture/ops/operands", page)
        self.assertIn("- [ ] `aten.c`: cpu became cpu, meta", page)
        self.assertIn("- [ ] `aten.d`: by meta, now by nothing", page)

    def test_the_rest_is_listed_apart(self):
        page = self.call({"aten.a": op(), "aten.b": op()},
                         {"aten.a": op("aten::a(Tensor y) -> Tensor"), "aten.n": op()})
        touched, rest = page.split("# What nothing of ours names")
        self.assertNotIn("- [ ]", touched)
        self.assertIn("- `aten.b`\n", rest)
        self.assertIn("- `aten.n` (results by meta)", rest)
        self.assertIn("is now `aten::a(Tensor y) -> Tensor`", rest)

    def test_another_file_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "expected what stowage-op-list prints"):
            self.call("[]", {})

    @unittest.skipUnless("STOWAGE_OP_LIST" in os.environ, "no program was built")
    def test_the_list_of_this_torch(self):
        done = subprocess.run([os.environ["STOWAGE_OP_LIST"]], capture_output=True, text=True,
                              check=True)
        ops = json.loads(done.stdout)["ops"]
        self.assertGreater(len(ops), 2000)
        self.assertEqual(ops["aten.mm.default"]["results_by"], "meta")
        self.assertIn("table", ops["aten.mm.default"]["ours"])
        self.assertIn("shape rule", ops["aten.native_layer_norm_backward.default"]["ours"])
        self.assertEqual(ops["aten.linear.default"]["kernels"], ["composite"])


if __name__ == "__main__":
    unittest.main()
