// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of a capture and makes the graph of them. Answers afterwards: captured_step.cpp.
#include "runtime/capture/capture.h"

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

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
#include "runtime/torch/torch_version.h"

namespace stowage::runtime {
namespace {

constexpr std::array<Tracer::Poison, kCapturedSteps> kPoisons = {
    Tracer::Poison::kOne, Tracer::Poison::kNan, Tracer::Poison::kHuge, Tracer::Poison::kZero};
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
    tracer.setSizeOf([this](const at::Tensor& tensor, SizeQuestion question) {
      return sizeOf(tensor, question);
    });
    tracer.setNumbersOf([this](const at::Tensor& tensor) { return numbersOf(tensor); });
  }
}

ir::Error CapturedStep::Impl::prepare() {
  if (TracingScope::isOnThisThread()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "a WithoutMemory scope is open, expected it to end before a capture");
  }
  if (ir::Error error = checkClosures(functions)) return error;
  if (ir::Error error = checkDevice(device)) return error;
  const auto isKnown = [this](const at::Tensor& tensor) {
    return isFurther() && functions.main->internals().holds(tensor);
  };
  ir::Expected<ModuleTensors> found =
      ModuleTensors::find(functions.module, functions.optimizer, isKnown);
  if (!found) return found.takeError();
  moduleTensors = std::move(*found);
  before.emplace(moduleTensors, functions.optimizer);
  for (const auto& [parameter, gradient] : before->gradients()) {
    // What the main step has left there is nothing to this one.
    if (isFake(gradient) && !isKnown(gradient)) at::Tensor(parameter).mutable_grad().reset();
  }
  moduleTensors.swapIn(device);
  for (const ModuleTensor& entry : moduleTensors.all()) storages.keyOf(entry.tensor);
  for (const InputSpec& spec : inputSpecs) {
    inputTensors.emplace_back(spec.name, makeInput(spec, device));
    storages.get(storages.keyOf(inputTensors.back().second)).input = true;
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
  assumed.clear();
  isObserving = true;
  ir::Error error = trace("while capturing " + options.name, [&] { return runStep(observed); });
  isObserving = false;
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
  if (std::all_of(steps.begin(), steps.end(),
                  [](const ObservedStep& step) { return step.trace.readBacks.empty(); })) {
    return ir::success();
  }
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

/// What only some steps read (a log of each third one), the last one has, too.
void CapturedStep::Impl::collectReads() {
  std::vector<ReadBack>& reads = steps.back().trace.readBacks;
  for (size_t i = 1; i + 1 < steps.size(); ++i) {
    for (const ReadBack& read : steps[i].trace.readBacks) {
      const bool isKnown = std::any_of(reads.begin(), reads.end(),
                                       [&](const ReadBack& known) { return known.isSameAs(read); });
      if (!isKnown) reads.push_back(read);
    }
  }
  std::stable_sort(reads.begin(), reads.end(),
                   [](const ReadBack& a, const ReadBack& b) { return a.before < b.before; });
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
                            {.producer = std::string("torch ") + torchVersion(),
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
  if (ir::Error error = findShared()) return error;
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
  impl.collectReads();
  if (ir::Error error = impl.findStepScalars()) return error;
  if (ir::Error error = impl.assemble()) return error;
  if (ir::Error error = impl.checkRewind()) return error;
  impl.modes = ModuleModes(impl.functions.module, impl.moduleTensors);
  if (impl.isFurther()) {
    impl.isAwake = true;
    impl.restingGradients = impl.before->gradients();
    impl.sleep();
  }
  return step;
}

}  // namespace stowage::runtime
