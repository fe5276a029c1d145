// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of a capture and makes the graph of them. Answers afterwards: captured_step.cpp.
#include "runtime/capture/capture.h"

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/version.h>

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/graph/check_graph.h"
#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/graph/known_storages.h"
#include "runtime/capture/graph/scopes.h"
#include "runtime/capture/host_state/host_rewind.h"
#include "runtime/executor/host_state.h"
#include "runtime/torch/deterministic_mode.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

constexpr std::array<Tracer::Poison, kCapturedSteps> kPoisons = {
    Tracer::Poison::kOne, Tracer::Poison::kNan, Tracer::Poison::kHuge, Tracer::Poison::kZero};
/// Where values are read: another answer, and the same again as in step 2.
constexpr size_t kRepeatedStep = 1;
constexpr Tracer::Poison kPoisonsOfReads[] = {Tracer::Poison::kNegative, kPoisons[kRepeatedStep]};

ir::Error checkDevice(c10::Device device) {
  if (device.is_cpu() || c10::impl::hasDeviceGuardImpl(device.type())) return ir::success();
  return ir::makeError(
      ir::ErrorCode::kEnvironment,
      "this process has no CUDA device, expected one to capture a step for cuda: run it where "
      "there is a GPU, in a program linked with libtorch's CUDA libraries, or capture for the "
      "device cpu. Without a GPU, the program `stowage` plans steps for cuda: its own models, and "
      "steps that torch.export wrote");
}

ir::Error checkClosures(const StepFunctions& functions) {
  const auto missing = [](const char* name, const char* expected) {
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        std::string("the closure `") + name + "` is missing, expected one that " + expected);
  };
  if (functions.whole) {
    if (functions.hostState == HostState::kDeclared && !functions.loss && !functions.update) {
      return ir::success();
    }
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "a step as one function, expected neither `loss` nor `update` beside it, and "
        "hostState = HostState::kDeclared");
  }
  if (!functions.loss) return missing("loss", "runs forward and backward and returns the loss");
  if (!functions.update) return missing("update", "steps the optimizer and drops the gradients");
  if (functions.lossNumbers == LossNumbers::kEachStep &&
      functions.hostState == HostState::kHidden) {
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "lossNumbers = LossNumbers::kEachStep with hidden host state, expected hostState = "
        "HostState::kDeclared: capture runs the closures four times, and what they count must "
        "begin again with the first step (optimizers do by themselves; name schedulers in "
        "`schedulers`, and put back counters of your own in `rewind`)");
  }
  return ir::success();
}

at::Tensor makeInput(const InputSpec& spec, c10::Device device) {
  std::vector<int64_t> strides = spec.strides;
  if (strides.size() != spec.sizes.size()) {
    const auto usual = ir::contiguousStrides(spec.sizes);
    strides.assign(usual.begin(), usual.end());
  }
  const TensorShape shape{.sizes = c10::DimVector(spec.sizes),
                          .strides = c10::DimVector(strides.begin(), strides.end()),
                          .offset = 0,
                          .dtype = spec.dtype};
  return makeTensor(makeFakeStorage(extentOf(shape), device, false), shape);
}

/// What the value that item() asked for was made by.
std::string makerOf(const StepTrace& step, const ReadBack& read) {
  for (size_t i = read.before; i-- > 0;) {
    const auto& results = step.nodes[i].results;
    if (std::find(results.begin(), results.end(), read.tensor) == results.end()) continue;
    return "the result of " + step.nodes[i].op->name;
  }
  return "a tensor that no op of the step made";
}

/// item() gave NaN, 1e30 and 0: has a number that differs between the steps come from there?
bool looksLikePoison(double number) {
  constexpr double kBeyondAnySetting = 1e25;
  const double size = std::abs(number);
  return std::isnan(number) || size >= kBeyondAnySetting ||
         (size > 0 && size <= 1 / kBeyondAnySetting);
}

/// Created by the first step, as opposed to held by the module or made outside.
std::vector<CreatedState> createdStates(const std::vector<KnownStorage>& known,
                                        const ModuleTensors& module, const StorageTable& storages) {
  std::vector<CreatedState> states;
  for (const KnownStorage& storage : known) {
    if (!storage.persistent || storages.isReal(storage.key)) continue;
    if (module.find(storage.key) != nullptr || storages.find(storage.key)->handFilled) continue;
    states.push_back({storage.key, storage.name, toScalarType(storage.type.dtype)});
  }
  return states;
}

}  // namespace

ir::Error explainByReads(ir::Error error, const StepTrace& step, size_t node) {
  if (step.readBacks.empty() || step.readBacks.front().before > node) return error;
  const ir::PlanError found = ir::takePayload(std::move(error));
  const std::string& place = step.readBacks.front().place;
  // Nobody's own item(): autograd has formulas that branch.
  const bool isAutograds = llvm::StringRef(place).endswith("backward");
  return ir::makeError(
      found.code(),
      found.text() + "; the step reads a value with item() (" + place +
          "), on which nothing that it does may depend" +
          (isAutograds ? "; libtorch's own backward of max(), min(), median() and prod() does so "
                         "(amax() and amin() do not)"
                       : ""));
}

ir::Error explainThrown(ir::Error thrown, Tracer& tracer, const StepRecorder& recorder) {
  if (ir::Error refusal = tracer.takeRefusal()) {
    llvm::consumeError(std::move(thrown));
    thrown = std::move(refusal);
  }
  const StepTrace& step = recorder.trace();
  const ir::PlanError found = ir::takePayload(std::move(thrown));
  if (found.code() != ir::ErrorCode::kTorch || step.readBacks.empty()) return ir::makeError(found);
  const ReadBack& read = step.readBacks.back();
  return ir::makeError(
      ir::ErrorCode::kUnsupported,
      found.text() + "; capture gave a made-up value for item() in this step, last of " +
          makerOf(step, read) + " (" + read.place +
          "): code that checks a value or decides by it cannot be captured; compute with the "
          "tensor instead, or check before the step");
}

CapturedStep::Impl::Impl(StepFunctions stepFunctions, std::vector<InputSpec> specs,
                         CaptureOptions captureOptions)
    : functions(std::move(stepFunctions)),
      inputSpecs(std::move(specs)),
      options(std::move(captureOptions)),
      device(toDevice(options.target.device)),
      storages(device.type()),
      recorder(storages),
      tracer({.target = options.target,
              .allDevices = false,
              .origin = {},
              .drawsOnHost = static_cast<bool>(functions.whole)},
             recorder) {
  if (functions.whole) {
    tracer.setKnownValueOf([this](const at::Tensor& tensor) { return knownValueOf(tensor); });
  }
}

ir::Error CapturedStep::Impl::prepare() {
  if (TracingScope::isOnThisThread()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "a WithoutMemory scope is open, expected it to end before a capture");
  }
  if (ir::Error error = checkClosures(functions)) return error;
  if (ir::Error error = checkDevice(device)) return error;
  ir::Expected<ModuleTensors> found = ModuleTensors::find(functions.module, functions.optimizer);
  if (!found) return found.takeError();
  moduleTensors = std::move(*found);
  before.emplace(moduleTensors, functions.optimizer);
  moduleTensors.swapIn(device);
  for (const ModuleTensor& entry : moduleTensors.all()) storages.keyOf(entry.tensor);
  for (const InputSpec& spec : inputSpecs) {
    inputTensors.emplace_back(spec.name, makeInput(spec, device));
    storages.keyOf(inputTensors.back().second);
  }
  std::unordered_map<StorageKey, std::string> paths;
  for (const ModuleTensor& entry : moduleTensors.all()) paths.emplace(entry.id, entry.path);
  recorder.setModulePaths(std::move(paths));
  hostNumbers.push_back(OptimizerNumbers::of(functions.optimizer));
  savedCounts = schedulerCounts(functions.schedulers);
  return ir::success();
}

ir::Expected<ObservedStep> CapturedStep::Impl::observeStep(Tracer::Poison poison) {
  ObservedStep observed;
  tracer.setPoison(poison);
  recorder.beginStep();
  GeneratorWatch generator(device.type());
  tracer.setGeneratorWatch(&generator);
  ir::Error error = trace("while capturing " + options.name, [&] { return runStep(observed); });
  tracer.setGeneratorWatch(nullptr);
  if (error) return error;
  if (!generator.isUntouched()) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "after its last op, the step sets the state of libtorch's random number "
                         "generator (manual_seed, set_state, or a draw on the host), which a plan "
                         "does not do: seed between steps");
  }
  observed.trace = recorder.endStep();
  return observed;
}

ir::Error CapturedStep::Impl::observeSteps() {
  const DeterministicMode deterministic(options.target.deterministic);
  for (const Tracer::Poison poison : kPoisons) {
    if (ir::Error error = observeNext(poison)) return error;
  }
  if (steps.back().trace.readBacks.empty()) return ir::success();
  for (const Tracer::Poison poison : kPoisonsOfReads) {
    if (ir::Error error = observeNext(poison)) return error;
  }
  return ir::success();
}

ir::Error CapturedStep::Impl::observeNext(Tracer::Poison poison) {
  ir::Expected<ObservedStep> observed = observeStep(poison);
  if (!observed) return observed.takeError();
  steps.push_back(std::move(*observed));
  hostNumbers.push_back(OptimizerNumbers::of(functions.optimizer));
  return ir::success();
}

ir::Error CapturedStep::Impl::compareSteps() {
  const StepTrace& last = steps.back().trace;
  for (size_t i = 1; i + 1 < steps.size(); ++i) {
    StepPart part = wholeStep(steps[i].trace, "step " + std::to_string(i + 1));
    StepPart lastPart = wholeStep(last, "step " + std::to_string(steps.size()));
    part.reports = steps[i].reports;
    lastPart.reports = steps.back().reports;
    PartMatch match;
    ir::Error error = matchSteps(part, lastPart, storages, {}, &match);
    if (error) return explainByReads(std::move(error), last, match.differsFrom);
  }
  return ir::success();
}

// A number that changes with the poison, and is the same again under the same poison, is made from
// what was read, whatever was made of it. One that the step's own numbers change as well shows at
// least where nonsense reaches it unchanged.
bool CapturedStep::Impl::comesFromRead(const ScalarSite& site) const {
  const StepTrace& last = steps.back().trace;
  const auto readBefore = [&](const ReadBack& read) { return read.before <= site.node; };
  if (std::none_of(last.readBacks.begin(), last.readBacks.end(), readBefore)) return false;
  if (numberAt(last, site) == numberAt(steps[kRepeatedStep].trace, site)) return true;
  return std::any_of(steps.begin() + 1, steps.end(), [&](const ObservedStep& step) {
    return looksLikePoison(numberAt(step.trace, site).value);
  });
}

ir::Error CapturedStep::Impl::findStepScalars() {
  const StepTrace& last = steps.back().trace;
  const StepAlignment alignment = alignFirstStep(steps.front().trace, last, storages);
  for (const ScalarSite& site : scalarSites(last)) {
    const bool inUpdate = site.node >= last.updateBegin;
    const HostNumber number = numberAt(last, site);
    bool differs = std::any_of(steps.begin() + 1, steps.end(), [&](const ObservedStep& step) {
      return !(numberAt(step.trace, site) == number);
    });
    const int32_t first = alignment.firstOf[site.node];
    if (!inUpdate && first >= 0) {
      const ScalarSite inFirst{static_cast<uint32_t>(first), site.argument, site.element};
      differs = differs || !(numberAt(steps.front().trace, inFirst) == number);
    }
    const bool mayDiffer = inUpdate || functions.lossNumbers == LossNumbers::kEachStep;
    if (!mayDiffer && !differs) {
      fixedNumbers.push_back(site);
      continue;
    }
    if (differs && comesFromRead(site)) {
      return ir::makeError(
          ir::ErrorCode::kUnsupported,
          last.nodes[site.node].op->name + ": its argument " +
              last.nodes[site.node].op->schema().arguments()[site.argument].name() +
              " is computed from a value that the step reads with item() (" +
              last.readBacks.front().place + "); compute with the tensor instead");
    }
    scalarsOutsideUpdate = scalarsOutsideUpdate || !inUpdate;
    stepScalars.push_back(site);
  }
  return checkReadsOfLoss();
}

/// Is what was read the update's own, unknown until that is over?
bool CapturedStep::Impl::isMadeByUpdate(const ReadBack& read) const {
  const StepTrace& last = steps.back().trace;
  const StorageKey storage = last.tensors[read.tensor].storage;
  for (size_t i = last.updateBegin; i < read.before; ++i) {
    const TracedNode& node = last.nodes[i];
    const auto isIt = [&](ir::ValueId id) {
      return id.isValid() && last.tensors[id].storage == storage;
    };
    if (llvm::any_of(node.results, isIt)) return true;
    if (llvm::any_of(node.writes, [&](const auto& write) { return isIt(write.value); }))
      return true;
  }
  return false;
}

/// What `loss` reads with item() must be known in each step before its update.
ir::Error CapturedStep::Impl::checkReadsOfLoss() const {
  const StepTrace& last = steps.back().trace;
  for (const ReadBack& read : last.readBacks) {
    if (read.before > last.updateBegin && !functions.whole) break;
    const bool isWritten =
        last.writtenFrom(read.before).contains(last.tensors[read.tensor].storage);
    std::string why;
    if (functions.whole && isMadeByUpdate(read)) {
      why =
          "that its update makes, which is not known while the step is prepared: return the tensor "
          "from the step and read it afterwards";
    } else if (scalarsOutsideUpdate) {
      why =
          "and computes with numbers that change from step to step, so that nothing could tell "
          "whether it decides by the value: return the value from `loss` and read it after the "
          "step, or give the numbers to `loss` as inputs of the step (tensors)";
    } else if (isWritten) {
      why =
          "of a tensor that the step writes afterwards: read it after the step, or read a clone "
          "of it";
    } else if (functions.hostState == HostState::kHidden) {
      why =
          "with hidden host state, expected hostState = HostState::kDeclared: capture gives it "
          "made-up values, and what `loss` keeps of them must be put back (in `rewind`; nothing "
          "to put back is fine); or return the value from `loss` and read it after the step";
    }
    if (why.empty()) continue;
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         (functions.whole ? "the step" : "`loss`") +
                             std::string(" reads a value with item() (") + read.place + ") " + why);
  }
  return ir::success();
}

ir::Error CapturedStep::Impl::assemble() {
  if (ir::Error error = checkOwners()) return error;
  if (ir::Error error = checkReports()) return error;
  const StepTrace& first = steps.front().trace;
  const ObservedStep& last = steps.back();
  StepRecord record{.step = last.trace,
                    .storages = storages,
                    .known = findKnownStorages(first, last.trace, storages,
                                               {.inputs = inputTensors,
                                                .module = moduleTensors,
                                                .optimizers = functions.optimizer,
                                                .gradients = gradients}),
                    .scopes = {},
                    .stepScalars = stepScalars,
                    .reports = last.reports,
                    .outputGradients = options.keepGradients};
  ir::Expected<FirstValues> values = FirstValues::find(
      first, last.trace, storages, createdStates(record.known, moduleTensors, storages));
  if (!values) return values.takeError();
  firstValues.emplace(std::move(*values));
  PathOfStorage paths;
  for (const KnownStorage& known : record.known) {
    if (!known.path.empty()) paths.emplace(known.key, known.path);
  }
  record.scopes = assignScopes(last.trace, paths);
  scopes = record.scopes;
  for (const ReadBack& readBack : last.trace.readBacks) record.reports.push_back(readBack.tensor);
  assembled = assembleGraph(record, options.name,
                            {.producer = "torch " TORCH_VERSION,
                             .recipe = options.recipe,
                             .device = ir::deviceKindName(options.target.device),
                             .target = options.target.profile,
                             .stepsCaptured = static_cast<int>(steps.size()),
                             .deterministic = options.target.deterministic});
  for (size_t i = 0; i < assembled.keys.size(); ++i) {
    idOf.emplace(assembled.keys[i], ir::StorageId(i));
  }
  for (const auto& [name, tensor] : inputTensors) {
    inputs.push_back(assembled.firstValues.at(fakeId(tensor)));
  }
  for (const ir::ValueId id : last.reports) reports.push_back(assembled.valueOf[id.index()]);
  for (const ReadBack& readBack : last.trace.readBacks) {
    readBacks.push_back(assembled.valueOf[readBack.tensor.index()]);
  }
  if (ir::Error error = ir::checkGraph(assembled.graph)) return error;
  return checkHostState(assembled.graph);
}

ir::Expected<std::unique_ptr<CapturedStep>> captureStep(StepFunctions functions,
                                                        std::vector<InputSpec> inputs,
                                                        CaptureOptions options) {
  // Its destructor puts the module's tensors back when a later line fails.
  auto step = std::make_unique<CapturedStep>(std::make_unique<CapturedStep::Impl>(
      std::move(functions), std::move(inputs), std::move(options)));
  CapturedStep::Impl& impl = step->internals();
  if (ir::Error error = impl.prepare()) return error;
  if (ir::Error error = impl.observeSteps()) return error;
  if (ir::Error error = impl.checkTrainedOutside()) return error;
  if (ir::Error error = impl.checkInputsAreRead()) return error;
  if (ir::Error error = impl.compareSteps()) return error;
  if (ir::Error error = impl.findStepScalars()) return error;
  if (ir::Error error = impl.assemble()) return error;
  if (ir::Error error = impl.checkRewind()) return error;
  impl.modes = ModuleModes(impl.functions.module, impl.moduleTensors);
  return step;
}

}  // namespace stowage::runtime
