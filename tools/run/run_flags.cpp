// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_flags.h"

#include <CLI/CLI.hpp>

#include "tools/cli/number_flag.h"
#include "tools/run/rank_processes.h"

namespace stowage::tools {

void addRunFlags(CLI::App& command, RunFlags& flags) {
  command.add_option("plan", flags.plan, "plan file")->required();
  command.add_option("--steps", flags.steps, "training steps of this run")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  command.add_option("--data", flags.data,
                     "batches: a safetensors file with the step's inputs or one row of tokens, or "
                     "text files; default: random numbers");
  command.add_option("--weights", flags.weights,
                     "safetensors files with every parameter and buffer; default: an imported "
                     "step's archive, for an example model first values drawn from --seed");
  command.add_option("--archive", flags.archive,
                     "the .pt2 file that an imported step came from, for the weights in it; "
                     "default: the one beside the step's file");
  command
      .add_flag("--random-weights", flags.randomWeights,
                "an imported step without weights: draw them from --seed, for a trial")
      ->excludes("--weights");
  command
      .add_option("--lr", flags.learningRate,
                  "learning rate of an imported step that takes it as an input; default after "
                  "--resume: the checkpoint's")
      ->check(CLI::Validator(describeBadRate, "FLOAT in [0 - 1e9]"));
  command.add_option(
      "--save", flags.save,
      "folder for a checkpoint, written after the last step and when SIGINT, SIGTERM "
      "or SIGHUP stops the run; a checkpoint of another training there is kept unless "
      "-f is given; FOLDER.stowage-partial, -previous and -lock are used meanwhile");
  addPauseFlags(command, flags.pauses);
  command.add_option("--resume", flags.resume,
                     "folder of the checkpoint to go on from, under the same budget or another");
  command.add_option("--disk", flags.disk,
                     "folder for what the plan keeps on disk: a nameless file, gone at the end");
  command
      .add_flag("--verify-disk", flags.verifyDisk,
                "compare checksums of what is read from disk with what was written")
      ->needs("--disk");
  command
      .add_option("--check-every", flags.checkEvery,
                  "compare every N-th step with the model's code, and the first 16; 0: none")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000'000}))
      ->capture_default_str();
  CLI::Option* otherData = command
                               .add_flag("--other-data", flags.otherData,
                                         "go on with other data than the checkpoint's training had")
                               ->needs("--resume");
  command
      .add_option("--seed", flags.seed,
                  "of first values, dropout and random data; default: 0, after --resume the "
                  "checkpoint's")
      ->check(CLI::Validator(describeBadSeed, ""));
  command
      .add_flag("--compare-unplanned", flags.compare,
                "also train with plain libtorch and compare every bit; for a step captured with "
                "--nondeterministic, compare the bits that libtorch repeats in two to eight "
                "runs")
      ->excludes(otherData);
  command.add_option("--graph", flags.graph,
                     "the captured step, where the plan does not say or embed it");
  command.add_option("--costs", flags.costs,
                     "costs file from 'stowage profile'; default: measure how ops allocate before "
                     "the first step");
  command.add_flag("--replan", flags.replan,
                   "if ops need more temporary memory than planned and the plan's decisions no "
                   "longer fit: plan again for the same budget, with all actions allowed");
  command
      .add_flag("--throttle-links", flags.throttle,
                "CPU only: slow copies down to the links in --costs, for example those of a GPU")
      ->needs("--costs");
  command.add_option("--costs-out", flags.times.costs,
                     "costs file to write: --costs with the op times measured in this run, for "
                     "better predictions");
  command.add_option("--timeline", flags.times.timeline,
                     "write a Perfetto trace of up to 10 steps (out.json, out.json.gz): every "
                     "command, what compute waited for, and with --costs the predicted times");
  command
      .add_option("--threads", flags.threads,
                  "threads inside one op; a plan for another number is refused")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--ranks", flags.ranks,
                  "start so many processes on this host that train together, for a plan made with "
                  "as many; under 'torchrun --no-python' the launcher's processes are the ranks")
      ->check(CLI::Range(int64_t{1}, kMostRanksOfHost));
  addCommonFlags(command, flags, /*writesFiles=*/true);
}

}  // namespace stowage::tools
