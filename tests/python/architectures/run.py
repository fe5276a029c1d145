# SPDX-License-Identifier: Apache-2.0
"""Checks architectures, each in processes of its own, and writes a table as JSON.

    python -m architectures.run [names] [--out table.json] [--only cpu|gpu] [--seconds 120]

From tests/python, with STOWAGE_LIBRARIES naming the folder of libstowage_core.so and PYTHONPATH the
package's. Exit code 1 when an architecture gives other bits, or its process dies.
"""

import argparse
import json
import multiprocessing
import sys
import time
import traceback

import torch

from . import check
from .table import TABLE

_PARTS = {"cpu": check.check_on_cpu, "gpu": check.check_for_gpu}


def _work(name, part, pipe):
    torch.set_num_threads(1)
    try:
        pipe.send(_PARTS[part](name))
    except BaseException as error:  # noqa: BLE001 - it is a line of the table
        pipe.send({f"{part}_error": f"{type(error).__name__}: {error}",
                   "traceback": traceback.format_exc()[-3000:]})


def run_one(name, part, seconds):
    """What the check of `part` says, of a forked process; `{part}_error` where nothing."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(name, part, there))
    process.start()
    there.close()
    try:
        answered = here.poll(seconds)
        made = here.recv() if answered else {f"{part}_error": f"no answer in {seconds} s"}
    except EOFError:
        process.join(10)
        made = {f"{part}_error": f"the process died, exit code {process.exitcode}"}
    process.kill()
    process.join()
    return made


def run(names, parts, seconds):
    """A list of one dictionary per architecture."""
    rows = []
    for name in names:
        began = time.monotonic()
        row = {"name": name}
        for part in parts:
            row.update(run_one(name, part, seconds))
        row["seconds_altogether"] = round(time.monotonic() - began, 1)
        rows.append(row)
        print(_line(row), flush=True)
    return rows


def _line(row):
    error = row.get("cpu_error") or row.get("gpu_error")
    told = row.get("message") or row.get("message_for_gpu") or error or ""
    gpu = {True: "gpu", False: "no gpu", None: "-"}[row.get("captured_for_gpu")]
    result = row.get("result", "error" if "cpu_error" in row else "-")
    return f"{row['name']:28} {result:10} {gpu:7} {row['seconds_altogether']:6} s  {told[:600]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="architectures (all)")
    parser.add_argument("--out", help="file for the table, as JSON")
    parser.add_argument("--only", choices=_PARTS, help="one of the two checks")
    parser.add_argument("--seconds", type=int, default=120, help="limit for one check")
    options = parser.parse_args()
    parts = [options.only] if options.only else list(_PARTS)
    rows = run(options.names or list(TABLE), parts, options.seconds)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    results = [row.get("result", "error") for row in rows]
    print({one: results.count(one) for one in sorted(set(results))},
          f"captured for a GPU: {sum(bool(row.get('captured_for_gpu')) for row in rows)}")
    bad = [row["name"] for row in rows
           if row.get("result") == "wrong" or "cpu_error" in row or "gpu_error" in row]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
