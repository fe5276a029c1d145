// SPDX-License-Identifier: Apache-2.0
//
// Trains a small network with dropout by plain libtorch and by a plan in less memory, and compares
// the losses of all steps and the parameters after them byte for byte.

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <stowage/stowage.h>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

namespace {

using namespace stowage::literals;
using torch::Tensor;

constexpr int kSteps = 6;
static_assert(std::is_base_of_v<torch::optim::Optimizer, stowage::AdamW>);

struct Training {
  torch::nn::Sequential model{nullptr};
  std::unique_ptr<torch::optim::AdamW> optimizer;

  Training() {
    torch::manual_seed(3);
    model = torch::nn::Sequential(torch::nn::Linear(64, 256), torch::nn::Dropout(0.25),
                                  torch::nn::Linear(256, 256), torch::nn::Linear(256, 64));
    optimizer = std::make_unique<torch::optim::AdamW>(model->parameters(), 3e-3);
    torch::manual_seed(4);
  }
  Tensor loss(const Tensor& x, const Tensor& y) {
    Tensor loss = torch::nn::functional::cross_entropy(model->forward(x), y);
    loss.backward();
    return loss;
  }
  void update() {
    optimizer->step();
    optimizer->zero_grad();
  }
};

std::pair<Tensor, Tensor> makeBatch(int step) {
  const Tensor x = torch::arange(128 * 64).view({128, 64}).to(torch::kFloat);
  return {torch::sin(x * (step + 1)), torch::arange(128).remainder(64)};
}

bool same(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

int compare() {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  Training eager;
  std::vector<Tensor> expected;
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, y] = makeBatch(i);
    expected.push_back(eager.loss(x, y).detach().clone());
    eager.update();
  }

  Training planned;
  const auto [exampleX, exampleY] = makeBatch(0);
  auto step = stowage::capture(
      {.loss = [&](const Tensor& x, const Tensor& y) { return planned.loss(x, y); },
       .update = [&] { planned.update(); },
       .module = planned.model,
       .optimizer = planned.optimizer.get()},
      exampleX, exampleY);

  // Without a reason to move anything; then with one; then with no way out.
  const stowage::Plan easy = stowage::orThrow(stowage::plan(step, {.budget = 1_GiB}));
  auto plan = stowage::plan(step, {.budget = stowage::Bytes(easy.keepAll().value() * 7 / 10)});
  auto impossible = stowage::plan(step, {.budget = 64_KiB});
  if (impossible) return std::printf("64 KiB were enough\n"), 1;
  const std::string infeasible = stowage::ir::describe(impossible.takeError());
  std::printf("%s\n", infeasible.c_str());

  torch::manual_seed(4);
  auto runner = stowage::Runner::create(plan, step);
  for (int i = 0; i < kSteps; ++i) {
    const auto [x, y] = makeBatch(i);
    const Tensor loss = runner(x, y);
    if (!same(loss, expected[static_cast<size_t>(i)])) return std::printf("loss %d\n", i), 1;
  }
  runner.save("checkpoint");
  runner.storeTo(planned.model);
  for (size_t i = 0; i < eager.model->parameters().size(); ++i) {
    if (!same(eager.model->parameters()[i], planned.model->parameters()[i])) {
      return std::printf("parameter %zu\n", i), 1;
    }
  }
  std::printf("%d steps in %s of %s: equal\n", kSteps, stowage::formatBytes(plan->budget()).c_str(),
              stowage::formatBytes(easy.keepAll()).c_str());
  return 0;
}

}  // namespace

int main() {
  try {
    return compare();
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
