// SPDX-License-Identifier: Apache-2.0
//
// One training program, run by plain libtorch and by its plan: equal bits, or a refusal that leaves
// the state of the last step. A program is made twice, so that both runs begin with the same
// modules, optimizers, host numbers and generator state.
#ifndef STOWAGE_TESTS_SUPPORT_TRAINED_TWICE_H_
#define STOWAGE_TESTS_SUPPORT_TRAINED_TWICE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/session_training.h"

namespace torch::optim {
class LRScheduler;
}

namespace stowage::tests {

/// A training of two inputs. Closures hold what they need; `owned` keeps it alive.
struct Program {
  std::shared_ptr<torch::nn::Module> module;
  OptimizerList optimizers;
  std::function<Tensor(const Tensor& x, const Tensor& y)> loss;
  std::function<void()> update;
  /// What the loop does before step `i`, outside of both closures.
  std::function<void(int i)> before = [](int) {};
  std::function<std::pair<Tensor, Tensor>(int i)> batch = &makeBatch;
  HostState hostState = HostState::kHidden;
  std::vector<torch::optim::LRScheduler*> schedulers = {};
  std::function<void()> rewind = {};
  LossNumbers lossNumbers = LossNumbers::kCaptured;
  std::vector<Tensor> outside = {};  // beside the module: to be compared, too
  std::shared_ptr<void> owned = {};
};
using MakeProgram = std::function<Program()>;

struct TwiceOptions {
  int steps = 12;
  /// Of what the step needs when nothing is moved or recomputed; null: all of it.
  std::optional<double> share = {};
  RunOptions run = {};
};

/// How the planned training ended.
struct Trained {
  /// Why capture, planning or a step was refused; code kInternal and no text when nothing was.
  Failed refusal;
  bool wasCaptured = false;
  int steps = 0;           // done by the plan
  std::string difference;  // of the plan's steps from plain libtorch's; empty: equal bits
  bool isRefused() const { return !refusal.text.empty(); }
};

/// Trains both ways. After a refused step, the state that storeTo gives is compared with that of as
/// many steps by plain libtorch.
Trained trainTwice(const MakeProgram& make, const TwiceOptions& options = {});

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_TRAINED_TWICE_H_
