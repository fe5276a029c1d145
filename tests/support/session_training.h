// SPDX-License-Identifier: Apache-2.0
//
// A small training for tests of the one-call interface: run by plain libtorch, or captured and
// planned; and what both must have in common.
#ifndef STOWAGE_TESTS_SUPPORT_SESSION_TRAINING_H_
#define STOWAGE_TESTS_SUPPORT_SESSION_TRAINING_H_

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session.h"
#include "runtime/torch/adamw.h"

namespace stowage::tests {

using namespace stowage::literals;
using at::Tensor;

using Description = StepDescription<Tensor, Tensor>;

inline std::unique_ptr<torch::optim::Optimizer> adamW(std::vector<Tensor> parameters) {
  return std::make_unique<torch::optim::AdamW>(std::move(parameters), 1e-2);
}

inline std::unique_ptr<torch::optim::Optimizer> fusedAdamW(std::vector<Tensor> parameters) {
  return std::make_unique<AdamW>(std::move(parameters));
}

inline std::unique_ptr<torch::optim::Optimizer> momentum(std::vector<Tensor> parameters) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(1e-2).momentum(0.9));
}

/// A small network with its optimizer, and its step as closures.
struct Training {
  torch::nn::Sequential model{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::vector<float> losses;

  explicit Training(decltype(&adamW) makeOptimizer = &adamW) {
    torch::manual_seed(3);
    model = torch::nn::Sequential(torch::nn::Linear(8, 16), torch::nn::GELU(),
                                  torch::nn::Dropout(0.2), torch::nn::Linear(16, 4));
    optimizer = makeOptimizer(model->parameters());
    torch::manual_seed(4);
  }

  Tensor forward(const Tensor& x, const Tensor& y) {
    return torch::nn::functional::cross_entropy(model->forward(x), y);
  }
  Tensor loss(const Tensor& x, const Tensor& y) {
    const Tensor loss = forward(x, y);
    loss.backward();
    return loss;
  }
  void update() {
    optimizer->step();
    optimizer->zero_grad();
  }
  Description describe() {
    return {.loss = [this](const Tensor& x, const Tensor& y) { return loss(x, y); },
            .update = [this] { update(); },
            .module = model,
            .optimizer = optimizer.get()};
  }
  /// The same; but its update does something else once `isChanged`, which outlives it, is set.
  Description describeChanging(const bool& isChanged) {
    Description description = describe();
    description.update = [this, &isChanged] {
      if (isChanged) optimizer->step();
      update();
    };
    return description;
  }
  void setRate(double rate) {
    for (auto& group : optimizer->param_groups()) group.options().set_lr(rate);
  }
};

inline std::pair<Tensor, Tensor> makeBatch(int step) {
  const Tensor x = at::arange(6 * 8).view({6, 8}).to(at::kFloat);
  return {at::sin(x * (step + 1)), at::arange(6).remainder(4)};
}

inline Step capture(const Description& description) {
  const auto [x, y] = makeBatch(0);
  return stowage::capture(description, x, y);
}

inline Runner makeRunner(const Step& step) {
  ir::Expected<Plan> made = plan(step, {.budget = 1_MiB});
  return Runner::create(made, step);
}

inline void trainEagerly(Training& training, const Description& step, int first, int last) {
  for (int i = first; i < last; ++i) {
    const auto [x, y] = makeBatch(i);
    training.losses.push_back(step.loss(x, y).item<float>());
    step.update();
  }
}

inline void trainEagerly(Training& training, int first, int last) {
  trainEagerly(training, training.describe(), first, last);
}

inline void train(Runner& runner, Training& training, int first, int last) {
  for (int i = first; i < last; ++i) {
    const auto [x, y] = makeBatch(i);
    training.losses.push_back(runner(x, y).item<float>());
  }
}

inline bool sameBits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

inline void expectSame(Training& a, Training& b) {
  EXPECT_EQ(a.losses, b.losses);
  const auto left = a.model->parameters(), right = b.model->parameters();
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(sameBits(left[i], right[i])) << "parameter " << i;
    EXPECT_TRUE(sameBits(left[i].grad(), right[i].grad())) << "gradient of parameter " << i;
  }
}

/// The code and text of the Failure that `act` ends in.
struct Failed {
  ir::ErrorCode code = ir::ErrorCode::kInternal;
  std::string text;
};
template <typename Act>
Failed failureOf(Act act) {
  try {
    act();
  } catch (const Failure& failure) {
    return {failure.code(), failure.what()};
  }
  return {};
}

inline void expectSays(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "expected '" << part << "' in: " << text;
  }
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SESSION_TRAINING_H_
