// SPDX-License-Identifier: Apache-2.0
#include "tests/support/trained_twice.h"

#include "runtime/capture/host_state/step_optimizer.h"

namespace stowage::tests {
namespace {

constexpr int kSeed = 11;

Step captureProgram(const Program& program) {
  const auto [x, y] = program.batch(0);
  const Description description{.loss = program.loss,
                                .update = program.update,
                                .module = program.module,
                                .optimizer = program.optimizers,
                                .hostState = program.hostState,
                                .schedulers = program.schedulers,
                                .rewind = program.rewind,
                                .lossNumbers = program.lossNumbers};
  return stowage::capture(description, x, y);
}

Runner planProgram(const Step& step, const TwiceOptions& options) {
  Plan made = orThrow(plan(step, {.budget = 64_MiB}));
  if (options.share) {
    const auto budget =
        static_cast<int64_t>(static_cast<double>(made.keepAll().value()) * *options.share);
    ir::Expected<Plan> tight = plan(step, {.budget = Bytes(budget)});
    if (tight) {
      made = std::move(*tight);
    } else {
      llvm::consumeError(tight.takeError());  // below what the step needs at once
    }
  }
  return Runner::create(made, step, options.run);
}

std::string difference(const Program& eager, const Program& planned) {
  const auto compare = [](const auto& left, const auto& right) -> std::string {
    for (const auto& item : left) {
      const Tensor* other = right.find(item.key());
      if (other == nullptr || !sameBits(item.value(), *other)) return item.key();
    }
    return "";
  };
  std::string name = compare(eager.module->named_parameters(), planned.module->named_parameters());
  if (!name.empty()) return "parameter " + name;
  name = compare(eager.module->named_buffers(), planned.module->named_buffers());
  if (!name.empty()) return "buffer " + name;
  for (size_t i = 0; i < eager.outside.size(); ++i) {
    if (!sameBits(eager.outside[i], planned.outside[i])) {
      return "tensor " + std::to_string(i) + " from outside";
    }
  }
  return "";
}

/// One more step of each optimizer on the same gradients shows its state, counts and rates.
void stepOnce(Program& program) {
  for (const auto& optimizer : program.optimizers) {
    for (const Tensor& parameter : optimizer->parameters()) {
      Tensor(parameter).mutable_grad() = at::full_like(parameter, 0.01);
    }
    optimizer->step();
  }
}

std::string lossDifference(const std::vector<Tensor>& eager, const std::vector<Tensor>& planned) {
  for (size_t i = 0; i < planned.size(); ++i) {
    if (!sameBits(eager[i], planned[i])) return "the loss of step " + std::to_string(i + 1);
  }
  return "";
}

std::vector<Tensor> trainPlainly(Program& program, int steps) {
  torch::manual_seed(kSeed);
  std::vector<Tensor> losses;
  for (int i = 0; i < steps; ++i) {
    program.before(i);
    const auto [x, y] = program.batch(i);
    losses.push_back(program.loss(x, y).detach().clone());
    program.update();
  }
  return losses;
}

}  // namespace

Trained trainTwice(const MakeProgram& make, const TwiceOptions& options) {
  Trained trained;
  Program planned = make();
  std::vector<Tensor> losses;
  trained.refusal = failureOf([&] {
    torch::manual_seed(kSeed);
    const Step step = captureProgram(planned);
    trained.wasCaptured = true;
    Runner runner = planProgram(step, options);
    torch::manual_seed(kSeed);
    const Failed ended = failureOf([&] {
      for (int i = 0; i < options.steps; ++i) {
        planned.before(i);
        const auto [x, y] = planned.batch(i);
        losses.push_back(runner(x, y));
        ++trained.steps;
      }
    });
    runner.storeTo(planned.module);
    if (!ended.text.empty()) throw Failure(ended.code, ended.text);
  });
  const Tensor draws = at::rand({4});
  Program eager = make();
  const std::vector<Tensor> expected = trainPlainly(eager, trained.steps);
  // The loop had come to the step that was refused.
  if (trained.wasCaptured && trained.isRefused()) eager.before(trained.steps);
  trained.difference = lossDifference(expected, losses);
  if (trained.difference.empty()) trained.difference = difference(eager, planned);
  if (!trained.difference.empty()) return trained;
  if (!sameBits(draws, at::rand({4}))) trained.difference = "the generator";
  stepOnce(eager);
  stepOnce(planned);
  const std::string inOptimizer = difference(eager, planned);
  if (!inOptimizer.empty()) trained.difference = inOptimizer + " after one more step";
  return trained;
}

}  // namespace stowage::tests
