#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""QLoRA on this machine's GPU: `bits_table.py` for a model that no table of results has.

Planned training against eager libtorch, byte for byte. Options and exit codes are those of
`bits_table.py`:

    qlora_bits.py [--budgets 100,70,50,40] [--launch none,no_update,whole]
"""

import sys

import bits_table

MODEL = ["llama_lora", *bits_table.LLAMA, "quantise=nf4", "precision=bfloat16", "schedule=step",
         "clip=1"]

if __name__ == "__main__":
    bits_table.MODELS.clear()
    bits_table.MODELS["llama_qlora"] = MODEL
    sys.exit(bits_table.main())
