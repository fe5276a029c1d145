// SPDX-License-Identifier: Apache-2.0
//
// What a static plan cannot hold is refused at capture, by the op's name, with the module nearby.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>

#include "runtime/capture/capture.h"

namespace stowage::runtime {
namespace {

using Forward = std::function<at::Tensor(const at::Tensor& hidden)>;

struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(8, 8));
    second = register_module("second", torch::nn::Linear(8, 4));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

/// The error of capturing a step with `middle` between its two layers; "" when it is captured.
std::string captureWith(
    const Forward& middle, const std::function<void(Net&)>& inUpdate = [](Net&) {}) {
  auto net = std::make_shared<Net>();
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  StepFunctions functions;
  functions.module = net;
  functions.optimizer = &optimizer;
  functions.hostState = HostState::kDeclared;
  functions.loss = [&](const std::vector<at::Tensor>& inputs) {
    const at::Tensor loss = net->second(middle(net->first(inputs[0]))).square().mean();
    loss.backward();
    return std::vector<at::Tensor>{loss.detach()};
  };
  functions.update = [&] {
    inUpdate(*net);
    optimizer.step();
    optimizer.zero_grad();
  };
  ir::Target target;
  target.profile = "cpu";
  auto step = captureStep(functions, {{"x", {3, 8}, torch::kFloat}}, {.target = target});
  return step ? "" : ir::describe(step.takeError());
}

struct RefusalCase {
  const char* name;
  Forward middle;
  std::vector<std::string> says;
};

void PrintTo(const RefusalCase& refusal, std::ostream* os) { *os << refusal.name; }

class CaptureRefusal : public testing::TestWithParam<RefusalCase> {};

TEST_P(CaptureRefusal, NamesOpAndModule) {
  const std::string text = captureWith(GetParam().middle);
  for (const std::string& part : GetParam().says) {
    EXPECT_NE(text.find(part), std::string::npos) << "expected '" << part << "' in: " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, CaptureRefusal,
    testing::Values(
        RefusalCase{"nonzero",
                    [](const at::Tensor& h) { return h + h.nonzero().sum(); },
                    {"aten.nonzero.default", "first", "depends on values"}},
        RefusalCase{"masked_select",
                    [](const at::Tensor& h) { return h + h.masked_select(h > 0).sum(); },
                    {"aten.masked_select.default", "first", "depends on values"}},
        RefusalCase{"mask_as_index",
                    [](const at::Tensor& h) { return h + h.index({h > 0}).sum(); },
                    {"aten.", "first", "depends on"}},
        RefusalCase{"unique",
                    [](const at::Tensor& h) { return h + std::get<0>(at::_unique(h)).sum(); },
                    {"aten._unique.default", "first", "depends on values"}},
        RefusalCase{"resize",
                    [](const at::Tensor& h) {
                      const at::Tensor room = at::empty({2});
                      room.resize_({8});
                      return h + room;
                    },
                    {"aten.resize_.default", "first", "changes the size of a storage"}},
        RefusalCase{"set",
                    [](const at::Tensor& h) {
                      at::Tensor other = at::zeros({8});
                      other.set_(at::ones({8}));
                      return h + other;
                    },
                    {"aten.set_.source_Tensor", "first", "another storage"}},
        RefusalCase{"as_strided_outside",
                    [](const at::Tensor& h) {
                      return h + h.as_strided({3, 8}, {8, 1}, 8);
                    },
                    {"aten.as_strided.default", "first", "outside of its storage"}},
        RefusalCase{"sparse",
                    [](const at::Tensor& h) { return h + h.to_sparse().to_dense(); },
                    {"aten.", "first"}},
        RefusalCase{"made_of_an_op_without_a_rule",
                    [](const at::Tensor& h) { return h + std::get<0>(at::frexp(h)); },
                    {"aten.frexp.Tensor (near first, forward) cannot be captured: no rule"}},
        RefusalCase{"repeats_of_a_tensor",
                    [](const at::Tensor& h) {
                      return h + h.repeat_interleave(at::ones({3}, at::kLong), 0).sum();
                    },
                    {"aten.repeat_interleave.Tensor", "first", "depends on values", "output_size"}},
        RefusalCase{"lengths_of_ctc_in_tensors",
                    [](const at::Tensor& h) {
                      const at::Tensor lengths = at::ones({3}, at::kLong);
                      const auto [loss, alpha] = at::_ctc_loss(
                          h.unsqueeze(0), at::ones({3, 1}, at::kLong), lengths, lengths);
                      return h + loss.sum();
                    },
                    {"aten._ctc_loss.Tensor", "first", "longest target", "as numbers"}},
        RefusalCase{"sparse_gradient_of_bags",
                    [](const at::Tensor& h) {
                      const at::Tensor indices = at::zeros({3}, at::kLong);
                      return std::get<0>(
                          at::embedding_bag(h, indices, at::arange(3), false, 0, true));
                    },
                    {"aten._embedding_bag_backward.default", "sparse"}},
        RefusalCase{"equal",
                    [](const at::Tensor& h) { return at::equal(h, h * 1) ? h : h * 2; },
                    {"aten.equal.default", "first", "host decision"}},
        RefusalCase{"is_nonzero",
                    [](const at::Tensor& h) { return h.sum().is_nonzero() ? h : h * 2; },
                    {"item()"}},
        RefusalCase{"branch_on_item",
                    [](const at::Tensor& h) { return h.sum().item<float>() > 0 ? h * 2 : h; },
                    {"item()", "first"}},
        RefusalCase{"branch_on_a_negative_item",
                    [](const at::Tensor& h) { return h.sum().item<float>() < -3 ? h * 2 : h; },
                    {"item()", "first"}},
        RefusalCase{
            "branch_on_a_count_of_none",
            [](const at::Tensor& h) { return h.gt(9).sum().item<int64_t>() == 0 ? h * 2 : h; },
            {"item()", "first"}},
        RefusalCase{
            "branch_on_a_large_count",
            [](const at::Tensor& h) { return h.gt(0).sum().item<int64_t>() > 500 ? h * 2 : h; },
            {"item()", "first"}},
        RefusalCase{"backward_that_branches_on_a_count",
                    [](const at::Tensor& h) { return h * h.prod(1, true); },
                    {"item()", "backward", "prod()"}},
        RefusalCase{"backward_that_branches_on_nan",
                    [](const at::Tensor& h) { return h * h.max(); },
                    {"item()", "backward", "amax()"}},
        RefusalCase{"item_as_number",
                    [](const at::Tensor& h) { return h * h.sum().item<float>(); },
                    {"item()", "aten.mul"}},
        RefusalCase{"item_as_size",
                    [](const at::Tensor& h) {
                      return h + at::zeros({h.gt(0).sum().item<int64_t>() + 10}).sum();
                    },
                    {"item()", "aten.zeros"}},
        RefusalCase{"clamped_item_as_number",
                    [](const at::Tensor& h) {
                      const double norm = h.detach().norm().item<double>();
                      return h * std::min(1.0, 0.5 / (norm + 1e-6));
                    },
                    {"item()", "aten.mul", "first"}},
        RefusalCase{"integer_item_as_number",
                    [](const at::Tensor& h) {
                      return h * static_cast<double>(h.gt(0).sum().item<int64_t>());
                    },
                    {"item()", "aten.mul"}},
        RefusalCase{"inverse_of_an_integer_item",
                    [](const at::Tensor& h) {
                      return h * (1.0 / static_cast<double>(h.gt(0).sum().item<int64_t>()));
                    },
                    {"item()", "aten.mul"}},
        RefusalCase{"item_cut_to_a_range",
                    [](const at::Tensor& h) {
                      return h * std::clamp(h.detach().norm().item<double>(), 0.25, 0.5);
                    },
                    {"item()", "aten.mul"}},
        RefusalCase{
            "flag_as_number",
            [](const at::Tensor& h) { return h * (h.gt(0).any().item<bool>() ? 0.5 : 1.0); },
            {"item()", "aten.mul"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(CaptureRefusals, AStepWithoutThemIsCaptured) {
  EXPECT_EQ(captureWith([](const at::Tensor& h) { return h.relu(); }), "");
}

// libtorch's attention asks it of query, key and value, to choose a projection.
TEST(CaptureRefusals, WhatEqualSaysOfATensorAndItselfIsKnown) {
  EXPECT_EQ(captureWith([](const at::Tensor& h) {
              const bool isItself = at::equal(h, h.view_as(h));
              const bool isOther = at::equal(h, h.flatten());
              return isItself && !isOther ? h : at::zeros_like(h);
            }),
            "");
}

// The number changes from step to step, and is needed before the value that was read is there to
// tell what the step does with it.
TEST(CaptureRefusals, ANumberOfTheStepBesideARead) {
  int step = 0;
  double logged = 0;
  const std::string text = captureWith([&](const at::Tensor& h) {
    logged += static_cast<double>(h.gt(0).sum().item<int64_t>());
    return h * (1.0 + 0.125 * ++step);
  });
  EXPECT_NE(text.find("numbers that change from step to step"), std::string::npos) << text;
  EXPECT_NE(text.find("read it after the step"), std::string::npos) << text;
}

// What clip_grad_norm_ reads in the update comes after it, so it is not the reason.
TEST(CaptureRefusals, AChangeBeforeTheFirstReadDoesNotBlameIt) {
  int step = 0;
  const std::string text =
      captureWith([&](const at::Tensor& h) { return ++step % 2 == 0 ? h.relu() : h.tanh(); },
                  [](Net& net) { torch::nn::utils::clip_grad_norm_(net.parameters(), 0.5); });
  EXPECT_NE(text.find("the step is not the same each time"), std::string::npos) << text;
  EXPECT_EQ(text.find("item()"), std::string::npos) << text;
}

TEST(CaptureRefusals, ReadingAValueForTheLogIsNoRefusal) {
  double logged = 0;
  EXPECT_EQ(captureWith([&](const at::Tensor& h) {
              logged += h.detach().norm().item<double>();
              return h;
            }),
            "");
}

TEST(CaptureRefusals, AViewOfAParameterThatIsNotItsStorageAlone) {
  auto net = std::make_shared<Net>();
  const at::Tensor both = torch::zeros({2, 4});
  net->register_buffer("shared", both[0]);
  net->second->bias.set_data(both[1]);
  StepFunctions functions;
  functions.module = net;
  functions.loss = [&](const std::vector<at::Tensor>& inputs) {
    const at::Tensor loss = net->second(net->first(inputs[0])).square().mean();
    loss.backward();
    return std::vector<at::Tensor>{loss.detach()};
  };
  functions.update = [&] { net->zero_grad(); };
  ir::Target target;
  target.profile = "cpu";
  auto step = captureStep(functions, {{"x", {3, 8}, torch::kFloat}}, {.target = target});
  ASSERT_FALSE(static_cast<bool>(step));
  const std::string text = ir::describe(step.takeError());
  EXPECT_NE(text.find("second.bias"), std::string::npos) << text;
  EXPECT_NE(text.find("shared"), std::string::npos) << text;
}

TEST(CaptureRefusals, DampenedMomentum) {
  auto net = std::make_shared<Net>();
  torch::optim::SGD optimizer(net->parameters(),
                              torch::optim::SGDOptions(0.1).momentum(0.9).dampening(0.5));
  StepFunctions functions;
  functions.module = net;
  functions.optimizer = &optimizer;
  functions.loss = [&](const std::vector<at::Tensor>& inputs) {
    const at::Tensor loss = net->second(net->first(inputs[0])).square().mean();
    loss.backward();
    return std::vector<at::Tensor>{loss.detach()};
  };
  functions.update = [&] {
    optimizer.step();
    optimizer.zero_grad();
  };
  ir::Target target;
  target.profile = "cpu";
  auto step = captureStep(functions, {{"x", {3, 8}, torch::kFloat}}, {.target = target});
  ASSERT_FALSE(static_cast<bool>(step));
  const std::string text = ir::describe(step.takeError());
  EXPECT_NE(text.find("momentum(first.weight)"), std::string::npos) << text;
  EXPECT_NE(text.find("dampening"), std::string::npos) << text;
}

}  // namespace
}  // namespace stowage::runtime
