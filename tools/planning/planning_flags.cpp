// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/planning_flags.h"

#include <llvm/ADT/StringRef.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "ir/base/affix.h"
#include "ir/costs/unplanned_peak.h"
#include "passes/allowed_actions.h"
#include "planner/targets/roofline.h"
#include "runtime/calibrate/calibrate.h"
#include "tools/files/load_files.h"

namespace stowage::tools {

namespace {

using llvm::StringRef;

ir::Error badFlag(std::string text) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, std::move(text));
}

/// --allow: "" is what a plan may do without it.
ir::Error readAllowed(const std::string& text, passes::PlanStepOptions& options) {
  if (text.empty()) return ir::success();
  ir::Expected<passes::AllowedActions> allowed = passes::parseAllowed(text);
  if (!allowed) return badFlag("--allow: " + ir::takePayload(allowed.takeError()).text());
  passes::setAllowed(*allowed, options);
  return ir::success();
}

/// What a storage's name is about: "w" for "m(w)", the name itself for others.
StringRef subjectOf(StringRef name) {
  const size_t open = name.find('(');
  return open != StringRef::npos && ir::endsWith(name, ")") ? name.slice(open + 1, name.size() - 1)
                                                            : name;
}

/// "state:PATTERN" is for the optimizer state of the parameters that match, whatever it is called:
/// one pin per storage. Others are the planner's.
ir::Error addPin(const planner::Pin& pin, PlanningInputs& inputs) {
  StringRef pattern(pin.pattern);
  if (!pattern.consume_front("state:")) {
    inputs.options.pins.push_back(pin);
    return ir::success();
  }
  bool found = false;
  for (const ir::Storage& storage : inputs.graph.storages()) {
    const bool isState = storage.role == ir::Role::kState || storage.role == ir::Role::kMaster;
    if (!isState || !planner::matchesGlob(pattern, subjectOf(storage.name))) continue;
    inputs.options.pins.push_back({.pattern = storage.name, .action = pin.action});
    found = true;
  }
  if (found) return ir::success();
  return badFlag("--pin: '" + pin.pattern + "' matches no optimizer state");
}

/// --host-updates: that share and no other, where --allow has no list without such updates.
ir::Error fixHostUpdates(const PlanningFlags& flags, passes::PlanStepOptions& options) {
  if (flags.hostUpdates < 0) return ir::success();
  if (flags.hostUpdates > 0 && !flags.allow.empty() && options.hostUpdates.empty()) {
    return badFlag("--host-updates: found --allow '" + flags.allow +
                   "', expected a list with host-step");
  }
  options.hostUpdates.clear();
  if (flags.hostUpdates > 0) options.hostUpdates = {flags.hostUpdates};
  options.mustUpdateOnHost = true;
  return ir::success();
}

ir::Error readLaunch(const std::string& text, PlanningInputs& inputs) {
  if (text.empty()) return ir::success();
  const std::optional<ir::GraphMode> mode = ir::findGraphMode(text);
  if (!mode) return badFlag("--launch: found '" + text + "', expected none, no_update or whole");
  if (*mode != ir::GraphMode::kNone && inputs.target.device != ir::DeviceKind::kCuda) {
    return badFlag(std::string("--launch ") + text + ": expected a target for CUDA, found '" +
                   inputs.target.profile + "'");
  }
  if (*mode != ir::GraphMode::kNone && !inputs.options.hostUpdates.empty()) {
    return badFlag("--launch " + text +
                   ": a CUDA graph cannot hold updates on the host, found --allow host-step or "
                   "--host-updates");
  }
  if (*mode != ir::GraphMode::kNone && inputs.options.limits.disk > Bytes(0)) {
    return badFlag("--launch " + text + ": a CUDA graph cannot wait for a disk, found --disk");
  }
  inputs.options.graphMode = *mode;
  return ir::success();
}

/// Threads and mode decide how long ops take and what they allocate.
ir::Error checkMeasuredFor(const ir::Target& target, const std::string& device) {
  const auto refuse = [&](const std::string& wanted) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "measured on '" + device + "', the plan is for " + wanted);
  };
  const std::string cpu = runtime::cpuCostsDevice(target.intraOpThreads, target.deterministic);
  if (target.device == ir::DeviceKind::kCpu && device != cpu) {
    return refuse("'" + cpu + "' (--threads; capture --nondeterministic)");
  }
  if (target.device == ir::DeviceKind::kCuda && runtime::isCpuCostsDevice(device)) {
    return refuse("target '" + target.profile + "', a CUDA device");
  }
  if (runtime::isOfDeterministicMode(device) != target.deterministic) {
    return refuse(std::string("a step captured ") + (target.deterministic ? "with" : "without") +
                  " libtorch's deterministic mode");
  }
  return ir::success();
}

/// A profile may stand for GPUs of its architecture that have none of their own: what was measured
/// on another one may be meant.
std::string describeOtherGpu(const ir::Target& target, const std::string& device) {
  if (target.device != ir::DeviceKind::kCuda) return "";
  if (planner::namesProfile(device, target.profile)) return "";
  return "measured on '" + device + "', the plan is for target '" + target.profile + "'";
}

/// --between-ranks: RATE or RATE:LATENCY, for plans from estimates.
ir::Error readRanksLink(const PlanningFlags& flags, PlanningInputs& inputs) {
  if (flags.betweenRanks.empty()) return ir::success();
  if (inputs.graph.ranks() == 1) {
    return badFlag("--between-ranks: the plan is for one process, expected --ranks of 2 or more");
  }
  if (!flags.costs.empty()) {
    return badFlag("--between-ranks: the link's rate is that of --costs, expected one of the two");
  }
  const auto [rateText, latencyText] = StringRef(flags.betweenRanks).split(':');
  ir::Expected<Size> rate = parseSizeFlag(rateText);
  const bool isRate = rate && rate->of == Size::Of::kAbsolute && !rate->withOutside;
  if (!rate) llvm::consumeError(rate.takeError());
  StringRef number = latencyText;
  int64_t microseconds = 0;
  const bool hasLatency = StringRef(flags.betweenRanks).contains(':');
  const bool isLatency =
      !hasLatency || (number.consume_back("us") && !number.getAsInteger(10, microseconds));
  constexpr int64_t kMostMicroseconds = 1'000'000;
  if (!isRate || rate->bytes <= Bytes(0) || !isLatency || microseconds < 0 ||
      microseconds > kMostMicroseconds) {
    return badFlag(
        "--between-ranks: found '" + flags.betweenRanks +
        "', expected bytes a second, such as 47GB, or with a latency, such as 47GB:20us");
  }
  ir::LinkRate& link = inputs.target.links.betweenRanks;
  link.bandwidth = BytesPerSecond(rate->bytes.value());
  if (hasLatency) link.latency = Nanoseconds(microseconds * 1000);
  return ir::success();
}

ir::Error readCosts(const PlanningFlags& flags, PlanningInputs& inputs) {
  if (flags.costs.empty()) {
    inputs.costs = planner::rooflineCosts(inputs.graph, inputs.target);
    return ir::success();
  }
  ir::Expected<planner::CostFile> file = loadCosts(flags.costs);
  if (!file) return file.takeError();
  if (file->table.source == ir::CostSource::kMeasured) {
    if (ir::Error error = checkMeasuredFor(inputs.target, file->table.device)) {
      return inInput(std::move(error), flags.costs);
    }
    if (ir::Error error = checkSameTorch(inputs.graph, file->torchVersion)) {
      return inInput(std::move(error), flags.costs);
    }
    const std::string other = describeOtherGpu(inputs.target, file->table.device);
    if (!other.empty()) remark(flags.costs + ": " + other, flags);
  }
  inputs.costs = std::move(file->table);
  if (inputs.costs.outside) inputs.target.outside = *inputs.costs.outside;
  inputs.costsPath = flags.costs;
  inputs.costsTorchVersion = std::move(file->torchVersion);
  return ir::success();
}

}  // namespace

void addRanksFlag(CLI::App& command, int64_t& ranks) {
  command
      .add_option(
          "--ranks", ranks,
          "processes that train together, each with 1/N of parameters, optimizer state and "
          "mean gradients, and batches of its own; the budget is that of each; default: one")
      ->check(CLI::Range(int64_t{1}, ir::kMostRanks));
}

void addPlanningFlags(CLI::App& command, PlanningFlags& flags) {
  command.add_option("step", flags.graph, "captured step (.stow)")->required();
  command.add_option("--target", flags.target,
                     "target profile; default: the one the step was captured for");
  command.add_option("--costs", flags.costs,
                     "costs measured by 'stowage profile'; default: the profile's estimate");
  command.add_option("--host", flags.host,
                     "host memory the plan may use, e.g. 100GiB; default: no limit");
  command.add_option("--disk", flags.disk,
                     "bytes on disk the plan may use for what --host has no room for, e.g. 500GiB; "
                     "default: none");
  command.add_option(
      "--allow", flags.allow,
      "comma list of offload,recompute,in-place-reuse,reorder,row-blocks or none; default: all. "
      "With "
      "host-step (alone: on top of all) updates may run on the host, whose bits are not a GPU's");
  command
      .add_option(
          "--host-updates", flags.hostUpdates,
          "per cent of the updates that run on the host, by bytes of parameters, instead of "
          "the planner's choice (--allow host-step)")
      ->check(CLI::Range(0, 100));
  command.add_option("--pin", flags.pins,
                     "PATTERN=ACTION, e.g. '*layers.0.*=keep', 'm(*)=host', '*=disk', or "
                     "'state:*layers.*=keep' for "
                     "the optimizer state of parameters; may be repeated; the last match wins");
  addRanksFlag(command, flags.ranks);
  command.add_option("--between-ranks", flags.betweenRanks,
                     "RATE or RATE:LATENCY, e.g. 47GB:20us: bytes that a rank receives from all "
                     "others in a second; default: the profile's estimate, or --costs");
  command.add_option("--launch", flags.launch,
                     "CUDA targets: how much of a step is launched as one CUDA graph: none, "
                     "no_update (forward and backward) or whole (for steps whose host numbers "
                     "never change: a constant learning rate and stowage_adamw); default: none");
  command
      .add_option("--threads", flags.threads,
                  "CPU targets: threads inside one op; default: the machine's cores")
      ->check(CLI::Range(1, 1024));
}

ir::Expected<planner::Pin> parsePin(const std::string& text) {
  const auto [pattern, action] = StringRef(text).rsplit('=');
  planner::Pin pin;
  pin.pattern = pattern.str();
  const std::optional<ir::GapAction> found =
      ir::findGapAction(action == "device" ? "keep" : action);
  if (pattern.empty() || !found) {
    return badFlag("--pin: found '" + text +
                   "', expected PATTERN=ACTION with ACTION keep, host, disk or recompute");
  }
  pin.action = *found;
  return pin;
}

namespace {

/// A number of bytes for `flag`, no share of anything.
ir::Expected<Bytes> readLimit(const char* flag, const std::string& text) {
  ir::Expected<Size> size = parseSizeFlag(text);
  const bool isBytes = size && size->of == Size::Of::kAbsolute && !size->withOutside;
  if (!size) llvm::consumeError(size.takeError());
  if (isBytes) return size->bytes;
  return badFlag(std::string(flag) + ": found '" + text +
                 "', expected bytes with a unit up to TiB, such as 100GiB, 512MB or 0B");
}

}  // namespace

ir::Error readHostLimit(const std::string& text, passes::PlanStepOptions& options) {
  if (text.empty()) return ir::success();
  ir::Expected<Bytes> limit = readLimit("--host", text);
  if (!limit) return limit.takeError();
  options.limits.host = *limit;
  return ir::success();
}

ir::Error readDiskLimit(const std::string& text, passes::PlanStepOptions& options) {
  if (text.empty()) return ir::success();
  ir::Expected<Bytes> limit = readLimit("--disk", text);
  if (!limit) return limit.takeError();
  options.limits.disk = *limit;
  options.allowed.disk = true;
  return ir::success();
}

void takeLimits(const planner::PlanFile& file, passes::PlanStepOptions& options) {
  if (file.hostLimit) options.limits.host = *file.hostLimit;
  if (!file.diskLimit) return;
  options.limits.disk = *file.diskLimit;
  options.allowed.disk = true;
}

void addGraphMemory(PlanningInputs& inputs) {
  // 9 to 13 KiB an op on an H200 (small models), recomputes and copies included.
  constexpr int64_t kBytesPerOp = int64_t{24} << 10;
  if (inputs.options.graphMode == ir::GraphMode::kNone) return;
  int64_t ops = 0;
  for (const ir::Node& node : inputs.graph.nodes()) {
    if (inputs.options.graphMode == ir::GraphMode::kNoUpdate && ir::endsGraph(node)) break;
    ++ops;
  }
  inputs.target.outside += Bytes(ops * kBytesPerOp);
}

Size::Wholes wholesOf(const PlanningInputs& inputs) {
  return {.device = inputs.target.memory, .peak = inputs.keepAll, .outside = inputs.target.outside};
}

ir::Expected<Bytes> resolveBudget(const Size& size, const PlanningInputs& inputs) {
  const bool isOfDevice = size.of == Size::Of::kDevice || size.withOutside;
  if (isOfDevice && inputs.target.device == ir::DeviceKind::kCpu) {
    return badFlag("found a budget of the " +
                   std::string(size.withOutside ? "whole device ('device:')" : "device ('%')") +
                   ", but the target '" + inputs.target.profile +
                   "' is for CPUs, whose memory belongs to no device: expected bytes such as "
                   "1.5GiB, or a share of the unplanned peak such as 50%peak");
  }
  return resolveSweptBudget(size, inputs);
}

ir::Expected<Bytes> resolveSweptBudget(const Size& size, const PlanningInputs& inputs) {
  const ir::Target& target = inputs.target;
  const Bytes bytes = size.resolve(wholesOf(inputs));
  if (size.withOutside && bytes.value() <= 0) {
    return badFlag("found " + formatBytes(bytes + target.outside) +
                   " for everything on the device, expected more than the " +
                   formatBytes(target.outside) + " that context, kernels and libraries take");
  }
  return Bytes(bytes.value() / target.alignBytes * target.alignBytes);
}

ir::Error countOutside(ir::Error error, const Size& size, const PlanningInputs& inputs) {
  ir::PlanError found = ir::takePayload(std::move(error));
  if (size.withOutside && found.infeasible() &&
      found.infeasible()->space == ir::spaceName(ir::Space::kDevice)) {
    ir::Infeasible counted = *found.infeasible();
    counted.outside = inputs.target.outside;
    found.because(std::move(counted));
  }
  return ir::makeError(std::move(found));
}

planner::SummaryCosts summaryCosts(const PlanningInputs& inputs) {
  return {.source = inputs.costs.source,
          .estimate = planner::describeEstimate(inputs.target),
          .errorPercent = planner::estimateErrorPercent(inputs.target)};
}

ir::Error measureKeepAll(PlanningInputs& inputs) {
  ir::Expected<ir::NodeCosts> costs = ir::resolveCosts(inputs.graph, inputs.costs);
  if (!costs) return costs.takeError();
  inputs.keepAll = ir::computeUnplannedPeak(inputs.graph, inputs.target, *costs);
  return ir::success();
}

ir::Expected<PlanningInputs> readPlanningInputs(const PlanningFlags& flags) {
  PlanningInputs inputs;
  ir::Expected<ir::Graph> graph = loadGraphForRanks(flags.graph, flags.ranks);
  if (!graph) return graph.takeError();
  inputs.graph = std::move(*graph);
  ir::Expected<ir::Target> target = chooseTarget(inputs.graph, flags.target, flags.threads);
  if (!target) {
    ir::Error error = target.takeError();
    if (flags.target.empty()) error = inInput(std::move(error), flags.graph);
    return ofStepFile(std::move(error), flags.graph);
  }
  inputs.target = std::move(*target);
  if (ir::Error error = readRanksLink(flags, inputs)) return error;
  if (ir::Error error = readCosts(flags, inputs)) return error;
  if (ir::Error error = readAllowed(flags.allow, inputs.options)) return error;
  if (ir::Error error = fixHostUpdates(flags, inputs.options)) return error;
  if (ir::Error error = readHostLimit(flags.host, inputs.options)) return error;
  if (ir::Error error = readDiskLimit(flags.disk, inputs.options)) return error;
  if (ir::Error error = readLaunch(flags.launch, inputs)) return error;
  for (const std::string& text : flags.pins) {
    ir::Expected<planner::Pin> pin = parsePin(text);
    if (!pin) return pin.takeError();
    if (ir::Error error = addPin(*pin, inputs)) return error;
  }
  if (ir::Error error = measureKeepAll(inputs))
    return notMeasured(std::move(error), flags.graph, flags.costs);
  return inputs;
}

}  // namespace stowage::tools
