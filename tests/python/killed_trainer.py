# SPDX-License-Identifier: Apache-2.0
"""A Trainer of 30 steps in a process of its own: `killed_trainer.py FOLDER planned|plain KILL_AT`.

KILL_AT: the step after which the process kills itself; 0: never. Goes on from the last checkpoint
where there is one. At the end it writes what it has come to into FOLDER/left.pt.
"""

import os
import pathlib
import signal
import sys

import torch
import transformers
from test_trainer import gpt2, left_by, make_trainer, wrapped


class Killer(transformers.TrainerCallback):
    def __init__(self, at):
        self.at = at

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def main():
    folder, how, kill_at = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    trainer = make_trainer(gpt2, folder, rows=128, max_steps=30, eval_steps=10, save_steps=8,
                           callbacks=[Killer(kill_at)])
    if how == "planned":
        wrapped(trainer)
    trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))
    torch.save(left_by(trainer), folder / "left.pt")


if __name__ == "__main__":
    main()
