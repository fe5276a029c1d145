// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_program.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>

#include <algorithm>
#include <optional>

#include "tests/support/random.h"

namespace stowage::tests {
namespace {

/// What the closures of one program read and write.
struct Host {
  int updates = 0;  // counted by `update`
  int losses = 0;   // counted by `loss`
  int loop = 0;     // set by the loop: the step
  Tensor outside;   // read by the loss; perhaps written by the loop
  Tensor counter;   // written by the loss
  Tensor average;   // written by the update
};

struct State {
  torch::nn::Sequential model;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  std::unique_ptr<torch::optim::LRScheduler> scheduler;
  Host host;
  std::vector<Tensor> parameters() const { return model->parameters(); }
};

using Change = std::function<Tensor(State&, const Tensor& loss, const Tensor& x, const Tensor& y)>;

/// Everything that a seed decides, before any tensor is made.
struct Choices {
  std::vector<int> layers;
  std::vector<int64_t> widths;
  double dropout = 0.2;
  bool dropsInput = false;
  int optimizer = 0;
  bool twoOptimizers = false;
  int clipping = 0;  // 0: none, 1: norm, 2: value
  bool scheduled = false;
  bool accumulates = false;
  std::vector<Change> changes;
  std::function<void(State&, int)> before = [](State&, int) {};
  std::function<void(State&)> inUpdate = [](State&) {};
  std::function<std::pair<Tensor, Tensor>(int)> batch = &makeBatch;
  LossNumbers lossNumbers = LossNumbers::kCaptured;
  bool declared = false;
};

enum Layer { kLinear, kLayerNorm, kBatchNorm, kGelu, kTanh, kDropout, kLayers };

void chooseModel(Random& random, Choices& choices) {
  const int64_t count = random.between(1, 5);
  for (int64_t i = 0; i < count; ++i) {
    choices.layers.push_back(static_cast<int>(random.between(0, kLayers - 1)));
    choices.widths.push_back(random.between(1, 4) * 8);
  }
  choices.dropout = 0.1 * static_cast<double>(random.between(1, 5));
  choices.dropsInput = random.chance(40);
  choices.optimizer = static_cast<int>(random.between(0, 4));
  choices.twoOptimizers = random.chance(20);
  choices.clipping = static_cast<int>(random.between(0, 2));
  choices.scheduled = random.chance(30);
  choices.accumulates = random.chance(20);
}

torch::nn::Sequential makeModel(const Choices& choices) {
  torch::nn::Sequential model;
  int64_t width = 8;
  if (choices.dropsInput) model->push_back(torch::nn::Dropout(choices.dropout));
  for (size_t i = 0; i < choices.layers.size(); ++i) {
    switch (choices.layers[i]) {
      case kLinear:
        model->push_back(torch::nn::Linear(width, choices.widths[i]));
        width = choices.widths[i];
        break;
      case kLayerNorm:
        model->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
        break;
      case kBatchNorm:
        model->push_back(torch::nn::BatchNorm1d(width));
        break;
      case kGelu:
        model->push_back(torch::nn::GELU());
        break;
      case kTanh:
        model->push_back(torch::nn::Tanh());
        break;
      default:
        model->push_back(torch::nn::Dropout(choices.dropout));
    }
  }
  model->push_back(torch::nn::Linear(width, 4));
  return model;
}

std::unique_ptr<torch::optim::Optimizer> makeOptimizer(int kind, std::vector<Tensor> parameters) {
  switch (kind) {
    case 0:
      return adamW(std::move(parameters));
    case 1:
      return momentum(std::move(parameters));
    case 2:
      return std::make_unique<torch::optim::RMSprop>(std::move(parameters), 1e-3);
    case 3:
      return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                  torch::optim::AdamOptions(1e-3).amsgrad(true));
    default:
      return fusedAdamW(std::move(parameters));
  }
}

/// A number of the loss: `read` is what it counts by.
struct NumberKind {
  const char* name;
  double (*at)(int count, int change, double size);
};
constexpr NumberKind kNumbers[] = {
    {"constant", [](int, int, double size) { return size; }},
    {"steps at", [](int count, int change, double size) { return count < change ? 1. : size; }},
    {"warms up from",
     [](int count, int change, double size) { return std::max(0, count - change) * size; }},
    {"falls until",
     [](int count, int change, double size) { return size / (1 + std::min(count, change)); }},
    {"differs only in",
     [](int count, int change, double size) { return count == change ? size : 1.; }},
    {"alternates by",
     [](int count, int change, double size) { return count % (change + 1) == 0 ? size : 1.; }},
};

constexpr size_t kLasting = 4;  // the first of them: a change is not taken back
constexpr int64_t kByLoop = 3;

void addNumber(Random& random, RandomProgram& program, Choices& choices) {
  const auto change = static_cast<int>(random.between(0, kProgramSteps - 1));
  const double size = 0.25 * static_cast<double>(random.between(2, 9));
  const int64_t source = random.between(0, kByLoop);
  // Not compared, and taken back before it is: a change in the first steps of hidden host state.
  const size_t kinds = source == kByLoop && !choices.declared ? kLasting : std::size(kNumbers);
  const NumberKind& kind = random.pick(llvm::ArrayRef<NumberKind>(kNumbers, kinds));
  constexpr int Host::*kCounts[] = {&Host::updates, &Host::updates, &Host::losses, &Host::loop};
  const char* const kSources[] = {"update", "update", "loss", "loop"};
  int Host::*const count = kCounts[source];
  const int64_t use = random.between(0, 2);
  choices.changes.push_back([=](State& state, const Tensor& loss, const Tensor& x, const Tensor&) {
    const double number = kind.at(state.host.*count, change, size);
    if (use == 0) return loss * number;
    if (use == 1) return loss + x.square().mean() * number;
    return loss + state.parameters()[0].square().sum() * (number * 1e-3);
  });
  program.traits.push_back(std::string("a number that ") + kind.name + " " +
                           std::to_string(change) + ", counted by " + kSources[source]);
}

void addLateOp(Random& random, RandomProgram& program, Choices& choices) {
  const auto change = static_cast<int>(random.between(1, kProgramSteps - 1));
  choices.changes.push_back([=](State& state, const Tensor& loss, const Tensor&, const Tensor&) {
    return state.host.updates < change ? loss : loss.square();
  });
  program.traits.push_back("an op from step " + std::to_string(change));
}

void addBranch(Random& random, RandomProgram& program, Choices& choices) {
  if (random.chance(50)) {
    // One batch has a target that the others do not have.
    const auto step = static_cast<int>(random.between(0, kProgramSteps - 1));
    choices.batch = [step, batch = choices.batch](int i) {
      auto [x, y] = batch(i);
      return std::pair(x, y.remainder(i == step ? 3 : 2));
    };
    choices.changes.push_back([](State&, const Tensor& loss, const Tensor&, const Tensor& y) {
      return y.max().item<int64_t>() == 2 ? loss * 2 : loss;
    });
    program.traits.push_back("a branch on the targets of step " + std::to_string(step));
    return;
  }
  const double low = 0.8 + 0.1 * static_cast<double>(random.between(0, 9));
  choices.changes.push_back([=](State&, const Tensor& loss, const Tensor&, const Tensor&) {
    const double value = loss.item<double>();
    return value > low && value < low + 0.15 ? loss * 2 : loss;
  });
  program.traits.push_back("a branch on a loss near " + std::to_string(low));
}

void addDraws(Random& random, RandomProgram& program, Choices& choices) {
  const int64_t kind = random.between(0, 3);
  const auto step = static_cast<int>(random.between(0, kProgramSteps - 1));
  switch (kind) {
    case 0:
      choices.changes.push_back([](State&, const Tensor& loss, const Tensor& x, const Tensor&) {
        return loss + (at::rand_like(x) * x).mean();
      });
      program.traits.emplace_back("draws of its own");
      return;
    case 1:
      choices.changes.push_back(
          [=](State& state, const Tensor& loss, const Tensor& x, const Tensor&) {
            if (state.host.updates >= step) torch::manual_seed(5);
            return loss + (at::rand_like(x) * x).mean();
          });
      program.traits.push_back("a seed from step " + std::to_string(step));
      return;
    case 2:
      choices.changes.push_back([](State&, const Tensor& loss, const Tensor& x, const Tensor&) {
        at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
        const Tensor before = generator.get_state();
        const Tensor first = at::rand_like(x);
        generator.set_state(before);
        return loss + ((first + at::rand_like(x)) * x).mean();
      });
      program.traits.emplace_back("draws twice from one state");
      return;
    default:
      choices.before = [inner = choices.before](State& state, int i) {
        inner(state, i);
        if (i % 3 == 2) torch::manual_seed(i);
      };
      program.traits.emplace_back("seeds between steps");
  }
}

void addOutside(Random& random, RandomProgram& program, Choices& choices) {
  const int64_t kind = random.between(0, 3);
  const auto step = static_cast<int>(random.between(0, kProgramSteps - 1));
  if (kind <= 1) {
    choices.changes.push_back([](State& state, const Tensor& loss, const Tensor&, const Tensor&) {
      return loss * state.host.outside.mean();
    });
    if (kind == 0) {
      program.traits.emplace_back("a tensor from outside");
      return;
    }
    choices.before = [=, inner = choices.before](State& state, int i) {
      inner(state, i);
      if (i == step) state.host.outside.mul_(2);
    };
    program.traits.push_back("a tensor from outside that is written before step " +
                             std::to_string(step));
    return;
  }
  if (kind == 2) {
    choices.changes.push_back([](State& state, const Tensor& loss, const Tensor&, const Tensor&) {
      state.host.counter.add_(1);
      return loss * (1 + state.host.counter * 0.01);
    });
    program.traits.emplace_back("a counter that the loss keeps in a tensor");
    return;
  }
  choices.changes.push_back([](State& state, const Tensor& loss, const Tensor&, const Tensor&) {
    state.host.counter.add_(1);
    return loss * std::min(0.9, 0.1 * state.host.counter.item<double>());
  });
  program.traits.emplace_back("a counter in a tensor that the host reads");
}

void addLayout(Random& random, RandomProgram& program, Choices& choices) {
  const auto step = static_cast<int>(random.between(0, kProgramSteps - 1));
  const bool always = random.chance(70);
  const bool gaps = random.chance(40);
  choices.batch = [=, batch = choices.batch](int i) {
    auto [x, y] = batch(i);
    if (!always && i < step) return std::pair(x, y);
    return std::pair(gaps ? at::cat({x, x}, 1).slice(1, 3, 11) : x.t().contiguous().t(), y);
  };
  program.traits.push_back(std::string(gaps ? "inputs with gaps" : "transposed inputs") +
                           (always ? "" : " from step " + std::to_string(step)));
}

void addAverage(RandomProgram& program, Choices& choices) {
  choices.inUpdate = [](State& state) {
    const at::NoGradGuard untracked;
    state.host.average.mul_(0.9).add_(state.parameters().back(), 0.1);
  };
  program.traits.emplace_back("an average of parameters");
}

Choices choose(uint64_t seed, RandomProgram& program) {
  Random random(seed);
  Choices choices;
  chooseModel(random, choices);
  // Numbers that vary, or hidden host state, refuse it at capture.
  const bool branches = random.chance(25);
  choices.declared = branches || random.chance(40);
  if (choices.declared) program.traits.emplace_back("declared host state");
  if (choices.declared && !branches && random.chance(60)) {
    choices.lossNumbers = LossNumbers::kEachStep;
    program.traits.emplace_back("numbers in each step");
  }
  const int64_t numbers = branches ? 0 : random.between(0, 2);
  for (int64_t i = 0; i < numbers; ++i) addNumber(random, program, choices);
  if (random.chance(15)) addLateOp(random, program, choices);
  if (branches) addBranch(random, program, choices);
  if (random.chance(40)) addDraws(random, program, choices);
  if (random.chance(30)) addOutside(random, program, choices);
  if (random.chance(35)) addLayout(random, program, choices);
  if (random.chance(20)) addAverage(program, choices);
  return choices;
}

std::shared_ptr<State> makeState(const Choices& choices) {
  auto state = std::make_shared<State>();
  torch::manual_seed(3);
  state->model = makeModel(choices);
  std::vector<Tensor> parameters = state->parameters();
  if (choices.twoOptimizers) {
    const std::vector<Tensor> last(parameters.end() - 2, parameters.end());
    parameters.resize(parameters.size() - 2);
    state->optimizers.push_back(makeOptimizer(1, last));
  }
  if (!parameters.empty()) {
    state->optimizers.push_back(makeOptimizer(choices.optimizer, parameters));
  }
  if (choices.scheduled) {
    state->scheduler = std::make_unique<torch::optim::StepLR>(*state->optimizers.front(), 3, 0.5);
  }
  state->host.outside = at::linspace(0.5, 1.5, 5);
  state->host.counter = at::zeros({});
  state->host.average = at::zeros_like(state->parameters().back());
  return state;
}

Tensor lossOf(const Choices& choices, State& state, const Tensor& x, const Tensor& y) {
  Tensor loss = torch::nn::functional::cross_entropy(state.model->forward(x), y);
  for (const Change& change : choices.changes) loss = change(state, loss, x, y);
  return loss;
}

Program makeProgram(const Choices& choices) {
  const std::shared_ptr<State> state = makeState(choices);
  Program program;
  program.module = state->model.ptr();
  program.optimizers = state->optimizers.size() == 1
                           ? OptimizerList(state->optimizers[0].get())
                           : OptimizerList{state->optimizers[0].get(), state->optimizers[1].get()};
  program.loss = [choices, own = state.get()](const Tensor& x, const Tensor& y) {
    Tensor loss = lossOf(choices, *own, x, y);
    loss.backward();
    if (choices.accumulates) {
      loss = lossOf(choices, *own, x * 0.5, y);
      loss.backward();
    }
    ++own->host.losses;
    return loss;
  };
  program.update = [choices, own = state.get()] {
    if (choices.clipping == 1) torch::nn::utils::clip_grad_norm_(own->parameters(), 0.5);
    if (choices.clipping == 2) torch::nn::utils::clip_grad_value_(own->parameters(), 0.01);
    for (const auto& optimizer : own->optimizers) optimizer->step();
    own->model->zero_grad();
    if (own->scheduler) own->scheduler->step();
    choices.inUpdate(*own);
    ++own->host.updates;
  };
  program.before = [choices, own = state.get()](int i) {
    own->host.loop = i;
    choices.before(*own, i);
  };
  program.batch = choices.batch;
  program.lossNumbers = choices.lossNumbers;
  if (choices.declared) {
    program.hostState = HostState::kDeclared;
    if (state->scheduler) program.schedulers.push_back(state->scheduler.get());
    program.rewind = [own = state.get()] { own->host.updates = own->host.losses = 0; };
  }
  program.outside = {state->host.outside, state->host.counter, state->host.average};
  program.owned = state;
  return program;
}

}  // namespace

std::string RandomProgram::text() const {
  std::string text;
  for (const std::string& trait : traits) text += (text.empty() ? "" : "; ") + trait;
  return text.empty() ? "nothing beside training" : text;
}

RandomProgram makeRandomProgram(uint64_t seed) {
  RandomProgram program;
  const Choices choices = choose(seed, program);
  program.make = [choices] { return makeProgram(choices); };
  return program;
}

}  // namespace stowage::tests
