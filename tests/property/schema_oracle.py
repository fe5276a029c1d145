#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges documents by the published schemas with the package jsonschema.

usage: schema_oracle.py CASES
CASES holds a line per case: {"schema": "plan" or "costs", "valid": ours, "document": ...}.
Prints each case that is judged otherwise, and exits with 1 when there is one.
"""

import json
import pathlib
import sys

import jsonschema

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "planner/files/schemas"


def is_integer(_, value):
    """Stricter than draft 7, where 1.0 is an integer: our readers want digits alone."""
    return isinstance(value, int) and not isinstance(value, bool)


def make_validator(name):
    schema = json.loads((SCHEMAS / f"{name}-1.0.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    types = jsonschema.Draft7Validator.TYPE_CHECKER.redefine("integer", is_integer)
    return jsonschema.validators.extend(jsonschema.Draft7Validator, type_checker=types)(schema)


def main():
    validators = {name: make_validator(name) for name in ("plan", "costs")}
    differing = cases = 0
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            cases += 1
            error = next(validators[case["schema"]].iter_errors(case["document"]), None)
            if (error is None) != case["valid"]:
                differing += 1
                print(f"{case['schema']}: ours: {'valid' if case['valid'] else 'refused'}; "
                      f"jsonschema: {error.message[:300] if error else 'valid'}")
    print(f"{cases} documents, {differing} judged otherwise")
    return 1 if differing or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
