// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <ATen/Parallel.h>

#include <cstdlib>
#include <optional>

#include "ir/unplanned_peak.h"
#include "passes/pass_manager.h"
#include "passes/pipeline.h"
#include "passes/plan_step.h"
#include "planner/roofline.h"
#include "runtime/calibrate.h"
#include "runtime/gpu_library.h"

namespace stowage {

struct Step::Impl {
  std::unique_ptr<runtime::CapturedStep> captured;
  std::shared_ptr<torch::nn::Module> module;
  ir::Graph graph;  // normalised
  ir::Target target;
  std::optional<ir::CostTable> costs;  // measured when first needed
};

struct Plan::Impl {
  passes::PlannedStep planned;
  ir::Target target;
  ir::NodeCosts costs;
  Bytes budget;
};

namespace {

ir::Expected<ir::Graph> normalise(const ir::Graph& graph) {
  passes::PassState state;
  state.graph = graph;
  const passes::PassManager manager(passes::makeNormalisingPasses({.reorder = false}));
  ir::Expected<std::vector<passes::PassRecord>> records = manager.run(state);
  if (!records) return records.takeError();
  return std::move(state.graph);
}

/// The profile that this machine's GPU goes by.
ir::Expected<ir::Target> targetOfGpu() {
  ir::Expected<runtime::GpuLibrary*> library = runtime::loadGpuLibrary();
  if (!library) {
    ir::PlanError error(ir::ErrorCode::kEnvironment,
                        "no CUDA device to capture for: run it where there is a GPU, in a program "
                        "linked with libtorch's CUDA libraries, or capture for the device cpu. "
                        "Without a GPU, the program `stowage` plans steps for cuda");
    const ir::PlanError why = ir::takePayload(library.takeError());
    error.note(why.text());
    error.notesOf(why);
    return ir::makeError(std::move(error));
  }
  ir::Expected<runtime::GpuFacts> facts = (*library)->describe();
  if (!facts) return facts.takeError();
  ir::Expected<ir::Target> target =
      planner::findProfileOfGpu(facts->name, facts->computeCapability);
  if (target) target->memory = facts->memory;
  return target;
}

ir::Target targetOf(const std::string& device) {
  ir::Target target =
      orThrow(device == "cuda" ? targetOfGpu() : planner::findTargetProfile(device));
  if (target.device == ir::DeviceKind::kCpu) target.intraOpThreads = at::get_num_threads();
  return target;
}

/// "62.5": as many digits as a millionth has.
std::string percentText(int64_t partPerMillion) {
  const std::string sign = partPerMillion < 0 ? "-" : "";
  const std::string text = sign + std::to_string(std::abs(partPerMillion / 10'000));
  std::string digits = std::to_string(std::abs(partPerMillion % 10'000) + 10'000).substr(1);
  while (!digits.empty() && digits.back() == '0') digits.pop_back();
  return digits.empty() ? text : text + "." + digits;
}

ir::Error checkBudget(Bytes budget) {
  constexpr Bytes kMost(int64_t{1} << 50);
  if (budget.value() <= 0) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "found a budget of " + std::to_string(budget.value()) +
                             " bytes, expected some: plan(step, {.budget = 24_GiB})");
  }
  if (budget <= kMost) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "found a budget of " + std::to_string(budget.value()) +
                           " bytes, expected at most 1 PiB: the arena is as large as the budget, "
                           "so name what the device has; Plan::keepAll() says what a plan that "
                           "moves nothing needs");
}

ir::Error checkBudget(const Size& budget) {
  constexpr int64_t kMost = 1'000'000'000;
  if (budget.of == Size::Of::kDevice || budget.withOutside) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "found a budget as a share of the device, expected bytes (24_GiB) or a "
                         "share of the unplanned peak (percentOfPeak(60))");
  }
  if (budget.of == Size::Of::kAbsolute) return checkBudget(budget.bytes);
  if (budget.partPerMillion > 0 && budget.partPerMillion <= kMost) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "found a budget of " + percentText(budget.partPerMillion) +
                           " % of the unplanned peak, expected more than 0 % and at most 100000 %");
}

ir::Error measureOnce(Step::Impl& step) {
  if (step.costs) return ir::success();
  ir::Expected<ir::CostTable> costs =
      runtime::calibrate(step.graph, {.device = step.target.device,
                                      .intraOpThreads = step.target.intraOpThreads,
                                      .alignBytes = step.target.alignBytes,
                                      .known = {}});
  if (!costs) return costs.takeError();
  ir::Expected<ir::LinkModel> links = runtime::measureLinks(step.target.device);
  if (!links) return links.takeError();
  costs->links = *links;
  if (costs->outside) step.target.outside = *costs->outside;
  step.costs = std::move(*costs);
  return ir::success();
}

/// The arena's bytes, whole alignment units. The step is measured.
ir::Expected<Bytes> resolveBudget(const Size& budget, const Step::Impl& step) {
  ir::Expected<ir::NodeCosts> costs = ir::resolveCosts(step.graph, *step.costs);
  if (!costs) return costs.takeError();
  const Bytes peak = ir::computeUnplannedPeak(step.graph, step.target, *costs);
  const Bytes bytes = budget.resolve({.device = step.target.memory, .peak = peak, .outside = {}});
  if (ir::Error error = checkBudget(bytes)) return error;
  return Bytes(bytes.value() / step.target.alignBytes * step.target.alignBytes);
}

}  // namespace

void orThrow(ir::Error error) {
  if (!error) return;
  const ir::PlanError payload = ir::takePayload(std::move(error));
  throw Failure(payload.code(), ir::describe(ir::makeError(payload)));
}

const ir::Graph& Step::graph() const { return impl_->graph; }
const ir::Target& Step::target() const { return impl_->target; }
const ir::Graph& Plan::graph() const { return impl_->planned.graph; }
const ir::Schedule& Plan::schedule() const { return impl_->planned.schedule; }
Bytes Plan::budget() const { return impl_->budget; }
Bytes Plan::keepAll() const { return impl_->planned.result.keepAllHeight; }
Nanoseconds Plan::predicted() const { return impl_->planned.schedule.predicted.stepTime; }
Bytes Plan::peak() const { return impl_->planned.schedule.predicted.peakBytes; }

Step detail::capture(AnyStep step, const std::vector<at::Tensor>& examples) {
  auto impl = std::make_shared<Step::Impl>();
  impl->target = targetOf(step.device);
  impl->module = step.functions.module;
  std::vector<runtime::InputSpec> inputs;
  for (size_t i = 0; i < examples.size(); ++i) {
    const std::string name =
        i < step.inputNames.size() ? step.inputNames[i] : "input" + std::to_string(i);
    inputs.push_back({.name = name,
                      .sizes = examples[i].sizes().vec(),
                      .dtype = examples[i].scalar_type(),
                      .strides = examples[i].strides().vec()});
  }
  impl->captured = orThrow(runtime::captureStep(std::move(step.functions), std::move(inputs),
                                                {.target = impl->target, .recipe = {}}));
  impl->graph = orThrow(normalise(impl->captured->graph()));
  return Step(std::move(impl));
}

ir::Expected<Plan> plan(const Step& step, const PlanOptions& options) {
  if (ir::Error error = checkBudget(options.budget)) return error;
  Step::Impl& from = step.internals();
  if (ir::Error error = measureOnce(from)) return error;
  auto made = std::make_shared<Plan::Impl>();
  made->target = from.target;
  ir::Expected<Bytes> budget = resolveBudget(options.budget, from);
  if (!budget) return budget.takeError();
  made->budget = *budget;
  passes::PlanStepOptions planOptions{.budget = made->budget,
                                      .allowed = options.allowed,
                                      .limits = options.limits,
                                      .pins = options.pins,
                                      .pinnedRows = {}};
  // Updates wait for what the loss reads, so that each step can be compared with the closures.
  if (!from.captured->valuesRead().empty()) planOptions.orders = {passes::Order::kProgram};
  ir::Expected<passes::PlannedStep> planned =
      passes::planStep(from.graph, from.target, *from.costs, planOptions);
  if (!planned) return planned.takeError();
  made->planned = std::move(*planned);
  ir::Expected<ir::NodeCosts> costs = ir::resolveCosts(made->planned.graph, *from.costs);
  if (!costs) return costs.takeError();
  made->costs = std::move(*costs);
  return Plan(std::move(made));
}

Runner Runner::create(const Plan& plan, const Step& step, const RunOptions& options) {
  const Plan::Impl& from = plan.internals();
  runtime::RunnerOptions forRunner;
  forRunner.checkEvery = options.checkEvery;
  return Runner(plan, step,
                orThrow(runtime::Runner::create(*step.internals().captured,
                                                {.graph = from.planned.graph,
                                                 .schedule = from.planned.schedule,
                                                 .target = from.target,
                                                 .costs = &from.costs},
                                                std::move(forRunner))));
}

Runner Runner::create(ir::Expected<Plan>& plan, const Step& step, const RunOptions& options) {
  if (plan) return create(*plan, step, options);
  orThrow(plan.takeError());
  throw Failure(ir::ErrorCode::kInternal, "a plan that is neither a plan nor an error");
}

at::Tensor Runner::step(const std::vector<at::Tensor>& inputs) {
  return orThrow(runner_->step(inputs)).front();
}

int64_t Runner::issueStep(const std::vector<at::Tensor>& inputs) {
  return orThrow(runner_->issue(inputs));
}

at::Tensor Runner::loss(int64_t step) { return orThrow(runner_->reports(step)).front(); }

void Runner::finish() { orThrow(runner_->finish()); }

int64_t Runner::stepsDone() const { return runner_->stepsDone(); }

void Runner::readState(const std::function<void()>& look) { orThrow(runner_->read(look)); }

void Runner::save(const std::string& folder) { orThrow(runner_->save(folder)); }

runtime::ResumePoint Runner::load(const std::string& folder) {
  return orThrow(runner_->load(folder));
}

void Runner::storeTo(const ModulePointer& module) {
  if (module.get() != step_.internals().module) {
    throw Failure(ir::ErrorCode::kInvalidArgument,
                  "storeTo was given another module than the one that was captured");
  }
  orThrow(runner_->storeTo());
}

}  // namespace stowage
