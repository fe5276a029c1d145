// SPDX-License-Identifier: Apache-2.0
//
// Plans of a captured step: made within a budget, saved, loaded.
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "ir/costs/unplanned_peak.h"
#include "ir/text/printer.h"
#include "passes/planned_file.h"
#include "passes/ways_out.h"
#include "planner/evaluate/evaluate.h"
#include "planner/files/cost_json.h"
#include "planner/files/plan_checks.h"
#include "planner/files/plan_json.h"
#include "planner/targets/roofline.h"
#include "planner/verdict/plan_costs.h"
#include "planner/verdict/plan_verdict.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/disk/disk_rates.h"
#include "runtime/files/input_file.h"
#include "runtime/files/whole_file.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/ranks/shard_bytes.h"
#include "runtime/session_impl.h"
#include "runtime/torch/torch_version.h"

namespace stowage {

namespace {

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

/// Is the step's device one of this process, or only planned for?
bool isHere(ir::DeviceKind device) {
  return device == ir::DeviceKind::kCpu || runtime::loadedGpuLibrary() != nullptr;
}

runtime::DiskRates diskRatesOf(const ir::LinkModel& links) {
  return {.write = links.diskWrite, .read = links.diskRead, .bothPermille = links.diskBothPermille};
}

void setDiskRates(const runtime::DiskRates& rates, ir::LinkModel& links) {
  links.diskWrite = rates.write;
  links.diskRead = rates.read;
  links.diskBothPermille = rates.bothPermille;
}

/// Once in the process for each folder: a training that runs may use the disk later.
ir::Expected<runtime::DiskRates> measuredDisk(const std::string& folder, Bytes most) {
  static std::mutex mutex;
  static std::map<std::string, runtime::DiskRates> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(folder);
  if (found != known.end()) return found->second;
  ir::Expected<runtime::DiskRates> rates =
      runtime::measureDisk(folder, std::min(most, runtime::kDiskSample));
  if (rates) known.emplace(folder, *rates);
  return rates;
}

/// Later plans of the step count with this disk.
ir::Error measureDiskOf(const PlanOptions& options, Step::Impl& step) {
  const bool isUsed = options.limits.disk > Bytes(0) && !options.diskFolder.empty();
  const bool isKnown = options.diskFolder == step.diskFolder;
  if (!isUsed || isKnown || !isHere(step.target.device)) return ir::success();
  ir::Expected<runtime::DiskRates> rates = measuredDisk(options.diskFolder, options.limits.disk);
  if (!rates) return rates.takeError();
  step.planner.reset();  // refers to the costs
  setDiskRates(*rates, step.costs->links);
  step.diskFolder = options.diskFolder;
  return ir::success();
}

ir::Error measureOnce(Step::Impl& step) {
  if (step.costs) return ir::success();
  if (!isHere(step.target.device)) {
    step.costs = planner::rooflineCosts(step.graph, step.target);
    return ir::success();
  }
  ir::Expected<ir::CostTable> costs =
      runtime::calibrate(step.graph, {.device = step.target.device,
                                      .intraOpThreads = step.target.intraOpThreads,
                                      .alignBytes = step.target.alignBytes,
                                      .deterministic = step.target.deterministic,
                                      .known = {}});
  if (!costs) return costs.takeError();
  const auto measureBlocks = [&](const ir::Graph& blocked) {
    return runtime::calibrate(blocked, {.device = step.target.device,
                                        .intraOpThreads = step.target.intraOpThreads,
                                        .alignBytes = step.target.alignBytes,
                                        .deterministic = step.target.deterministic,
                                        .known = *costs});
  };
  if (ir::Error error = passes::addRowBlockCosts(step.graph, *costs, measureBlocks)) return error;
  ir::Expected<ir::LinkModel> links = runtime::measureLinks(step.target);
  if (!links) return links.takeError();
  costs->links = *links;
  setDiskRates(diskRatesOf(step.target.links), costs->links);
  if (costs->outside) step.target.outside = *costs->outside;
  step.costs = std::move(*costs);
  return ir::success();
}

/// By the step's planner, which is kept for further budgets.
ir::Expected<passes::PlannedStep> planWith(Step::Impl& step,
                                           const passes::PlanStepOptions& options) {
  const auto isSame = [&](const passes::PlanStepOptions& kept) {
    return kept.allowed == options.allowed && kept.limits == options.limits &&
           kept.pins == options.pins && kept.orders == options.orders &&
           kept.rowBlocks == options.rowBlocks && kept.hostUpdates == options.hostUpdates;
  };
  if (!step.planner || !isSame(step.planner->options)) {
    step.planner.reset();
    ir::Expected<passes::StepPlanner> planner =
        passes::StepPlanner::make(step.graph, step.target, *step.costs, options);
    if (!planner) return planner.takeError();
    step.planner.emplace(KeptPlanner{.options = options, .planner = std::move(*planner)});
  }
  return step.planner->planner.plan(options.budget);
}

/// Of the step as captured, whatever order, row blocks or updates on the host a plan has.
struct Unplanned {
  Bytes keepAll;
  Nanoseconds time;
};
/// The step is measured.
ir::Expected<Unplanned> findUnplanned(const Step::Impl& step) {
  ir::Expected<ir::NodeCosts> costs = ir::resolveCosts(step.graph, *step.costs);
  if (!costs) return costs.takeError();
  return Unplanned{.keepAll = ir::computeUnplannedPeak(step.graph, step.target, *costs),
                   .time = costs->totalTime()};
}

/// What was asked of a step, for the planner.
struct PlanRequest {
  passes::PlanStepOptions options;
  Unplanned unplanned;
};

/// The arena's bytes, whole alignment units.
ir::Expected<Bytes> resolveBudget(const Size& budget, Bytes keepAll, const Step::Impl& step) {
  const Bytes bytes =
      budget.resolve({.device = step.target.memory, .peak = keepAll, .outside = {}});
  if (ir::Error error = checkBudget(bytes)) return error;
  return Bytes(bytes.value() / step.target.alignBytes * step.target.alignBytes);
}

/// Measures what was not measured before.
ir::Expected<PlanRequest> makeRequest(const PlanOptions& options, Step::Impl& step) {
  if (ir::Error error = checkBudget(options.budget)) return error;
  if (ir::Error error = measureOnce(step)) return error;
  if (ir::Error error = measureDiskOf(options, step)) return error;
  ir::Expected<Unplanned> unplanned = findUnplanned(step);
  if (!unplanned) return unplanned.takeError();
  ir::Expected<Bytes> budget = resolveBudget(options.budget, unplanned->keepAll, step);
  if (!budget) return budget.takeError();
  PlanRequest request{.options = {.budget = *budget,
                                  .allowed = {.disk = options.limits.disk > Bytes(0)},
                                  .limits = options.limits,
                                  .pins = options.pins,
                                  .pinnedRows = {}},
                      .unplanned = *unplanned};
  passes::setAllowed(options.allowed, request.options);
  // Updates wait for what the loss reads, so that each step can be compared with the closures.
  if (!step.captured->valuesRead().empty()) request.options.orders = {passes::Order::kProgram};
  return request;
}

ir::Error resolveCosts(const Step::Impl& step, Plan::Impl& plan) {
  ir::Expected<ir::NodeCosts> costs =
      ir::resolveCosts(plan.graph, planner::costsForPlan(plan.file, plan.graph, *step.costs),
                       plan.file.schedule.graphMode);
  if (!costs) return costs.takeError();
  plan.costs = std::move(*costs);
  return ir::success();
}

/// What a plan that was read must be for to run here.
ir::Error checkMachine(const planner::PlanFile& file, const Step::Impl& step) {
  ir::Error error = planner::checkPlanTarget(file, step.target);
  if (!error) return error;
  return ir::makeError(ir::takePayload(std::move(error)).at({.file = file.path}));
}

/// This step's own measurement where the plan was made from it, else what the plan says.
ir::Expected<planner::PlansCosts> costsOf(const planner::PlanFile& file, const ir::Graph& graph,
                                          const Step::Impl& step) {
  using Found = std::optional<planner::CostFile>;
  if (step.costs) {
    planner::CostFile own = {.stowageVersion = "",
                             .torchVersion = runtime::torchVersion(),
                             .table = planner::costsForPlan(file, graph, *step.costs)};
    if (planner::isMadeFrom(file, own.table)) {
      return planner::PlansCosts{.file = std::move(own), .path = "", .missing = ""};
    }
  }
  return planner::findPlansCosts(file, graph, [](const std::string& path) -> ir::Expected<Found> {
    if (!llvm::sys::fs::exists(path)) return Found();
    ir::Expected<std::string> text = runtime::readInput(path);
    if (!text) return text.takeError();
    ir::Expected<planner::CostFile> costs = planner::readCosts(*text, path);
    if (!costs) return costs.takeError();
    return Found(std::move(*costs));
  });
}

/// `path`: where the text is from, for messages.
ir::Expected<Plan> parsePlan(const std::string& text, const std::string& path, Step::Impl& step) {
  ir::Expected<planner::PlanFile> file = planner::readPlan(text, path);
  if (!file) return file.takeError();
  if (ir::Error error = checkMachine(*file, step)) return error;
  ir::Expected<passes::ArrangedGraph> arranged =
      passes::arrangeForPlan(step.graph, *file, "of the captured step");
  if (!arranged) {
    ir::PlanError error = ir::takePayload(arranged.takeError());
    error.note(
        "the plan is for another step: capture the one that it was made for, with the same "
        "model, sizes of inputs and optimizer, or plan this one");
    return ir::makeError(std::move(error));
  }
  ir::Expected<planner::PlansCosts> costs = costsOf(*file, arranged->graph, step);
  if (!costs) return costs.takeError();
  if (ir::Error error = planner::checkPlan(*file, arranged->graph, *costs)) return error;
  if (ir::Error error = measureOnce(step)) return error;
  auto plan = std::make_shared<Plan::Impl>();
  plan->file = std::move(*file);
  plan->file.graph.text.reset();
  plan->graph = std::move(arranged->graph);
  if (ir::Error error = resolveCosts(step, *plan)) return error;
  if (ir::Error error = planner::checkPlanTemporaries(plan->file, plan->graph, plan->costs)) {
    return error;
  }
  ir::Expected<Unplanned> unplanned = findUnplanned(step);
  if (!unplanned) return unplanned.takeError();
  plan->keepAll = unplanned->keepAll;
  plan->unlimited = unplanned->time;
  return Plan(std::move(plan));
}

ir::Expected<Plan> readPlan(const std::string& path, Step::Impl& step) {
  ir::Expected<std::string> text = runtime::readInput(path);
  if (!text) return text.takeError();
  return parsePlan(*text, path, step);
}

ir::Expected<std::string> textOf(const Plan::Impl& plan, bool embedsGraph) {
  planner::PlanFile file = plan.file;
  file.stowageVersion = STOWAGE_VERSION;
  if (embedsGraph) file.graph.text = ir::toText(plan.graph);
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (ir::Error error = planner::writePlan(file, stream)) return error;
  stream.flush();
  return text;
}

}  // namespace

ir::Expected<Plan> takeFirstRanksPlan(const Plan& own, const Step& step,
                                      const runtime::TrainingRanks& ranks) {
  ir::Expected<std::string> text = textOf(own.internals(), /*embedsGraph=*/false);
  if (!text) return text.takeError();
  const auto* begin = reinterpret_cast<const uint8_t*>(text->data());
  ir::Expected<std::vector<uint8_t>> first =
      runtime::takeFromFirst(ranks.between, {begin, text->size()});
  if (!first) return first.takeError();
  if (ranks.rank() == 0) return own;
  ir::Expected<Plan> plan =
      parsePlan(std::string(first->begin(), first->end()), "the plan of rank 0", step.internals());
  if (!plan) return plan.takeError();
  auto taken = std::make_shared<Plan::Impl>(plan->internals());
  taken->diskFolder = own.internals().diskFolder;
  return Plan(std::move(taken));
}

const ir::Graph& Plan::graph() const { return impl_->graph; }
const ir::Schedule& Plan::schedule() const { return impl_->file.schedule; }
Bytes Plan::budget() const { return impl_->file.budget; }
Bytes Plan::keepAll() const { return impl_->keepAll; }
Nanoseconds Plan::predicted() const { return impl_->file.schedule.predicted.stepTime; }
Bytes Plan::peak() const { return impl_->file.schedule.predicted.peakBytes; }

ir::Expected<Plan> plan(const Step& step, const PlanOptions& options) {
  Step::Impl& from = step.internals();
  const std::lock_guard<std::mutex> lock(from.planning);
  ir::Expected<PlanRequest> request = makeRequest(options, from);
  if (!request) return request.takeError();
  ir::Expected<passes::PlannedStep> planned = planWith(from, request->options);
  if (!planned) return planned.takeError();
  auto made = std::make_shared<Plan::Impl>();
  made->file = passes::makePlanFile(*planned, from.target, request->options);
  made->file.torchVersion = runtime::torchVersion();
  made->file.costs = {
      .fingerprint = planner::costsFingerprint(passes::costsOf(*planned, *from.costs)),
      .source = from.costs->source,
      .file = ""};
  made->keepAll = request->unplanned.keepAll;
  made->unlimited = request->unplanned.time;
  made->diskFolder = options.diskFolder;
  made->graph = std::move(planned->graph);
  if (ir::Error error = resolveCosts(from, *made)) return error;
  return Plan(std::move(made));
}

ir::Error addWaysOut(ir::Error error, const Step& step, const PlanOptions& options) {
  ir::PlanError found = ir::takePayload(std::move(error));
  if (!found.infeasible()) return ir::makeError(std::move(found));
  Step::Impl& from = step.internals();
  const std::lock_guard<std::mutex> lock(from.planning);
  ir::Expected<PlanRequest> request = makeRequest(options, from);
  if (!request) return request.takeError();
  ir::Expected<std::vector<passes::Variation>> variations =
      passes::findVariations(from.graph, request->options);
  if (!variations) return variations.takeError();
  ir::Expected<ir::PlanError> all = passes::addWaysOut({.graph = from.graph,
                                                        .target = from.target,
                                                        .costs = *from.costs,
                                                        .options = request->options,
                                                        .variations = std::move(*variations)},
                                                       std::move(found));
  if (!all) return all.takeError();
  return ir::makeError(std::move(*all));
}

void Plan::save(const std::string& path) const { orThrow(trySave(path)); }

ir::Error Plan::trySave(const std::string& path) const {
  ir::Expected<std::string> text = textOf(*impl_, /*embedsGraph=*/true);
  if (!text) return text.takeError();
  return runtime::replaceFile(path, [&](llvm::raw_ostream& os) { os << *text; });
}

Plan Plan::load(const std::string& path, const Step& step) {
  return orThrow(readPlan(path, step.internals()));
}

}  // namespace stowage
