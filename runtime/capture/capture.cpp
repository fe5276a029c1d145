// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of a capture and makes the graph of them. Answers afterwards: captured_step.cpp.
#include "runtime/capture/capture.h"

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/version.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/scopes.h"
#include "runtime/torch_boundary.h"

namespace stowage::runtime {
namespace {

constexpr std::array<Tracer::Poison, kCapturedSteps> kPoisons = {
    Tracer::Poison::kOne, Tracer::Poison::kNan, Tracer::Poison::kHuge, Tracer::Poison::kNegative};

c10::Device deviceOf(const ir::Target& target) {
  return target.device == ir::DeviceKind::kCuda ? c10::Device(c10::kCUDA, 0)
                                                : c10::Device(c10::kCPU);
}

ir::Error checkDevice(c10::Device device) {
  if (device.is_cpu() || c10::impl::hasDeviceGuardImpl(device.type())) return ir::success();
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       "this process has no device type cuda, real or fake, expected one to capture "
                       "a step for cuda (call enableFakeGpu, or load the CUDA libraries)");
}

/// Deterministic algorithms as the target says, for as long as it lives.
class DeterministicMode {
 public:
  explicit DeterministicMode(bool on)
      : was_(at::globalContext().deterministicAlgorithms()),
        warned_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
    at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
  }
  ~DeterministicMode() { at::globalContext().setDeterministicAlgorithms(was_, warned_); }
  DeterministicMode(const DeterministicMode&) = delete;
  DeterministicMode& operator=(const DeterministicMode&) = delete;

 private:
  bool was_, warned_;
};

std::vector<at::Tensor> makeInputs(const std::vector<InputSpec>& specs, c10::Device device) {
  std::vector<at::Tensor> inputs;
  for (const InputSpec& spec : specs) {
    const auto strides = ir::contiguousStrides(spec.sizes);
    const TensorShape shape{.sizes = c10::DimVector(spec.sizes),
                            .strides = c10::DimVector(strides.begin(), strides.end()),
                            .offset = 0,
                            .dtype = spec.dtype};
    inputs.push_back(makeTensor(makeFakeStorage(extentOf(shape), device, false), shape));
  }
  return inputs;
}

/// A refusal inside a closure says more than the exception that it came out as.
ir::Error preferRefusal(ir::Error thrown, Tracer& tracer) {
  ir::Error refusal = tracer.takeRefusal();
  if (!refusal) return thrown;
  llvm::consumeError(std::move(thrown));
  return refusal;
}

}  // namespace

CapturedStep::Impl::Impl(StepFunctions stepFunctions, std::vector<InputSpec> specs,
                         CaptureOptions captureOptions)
    : functions(std::move(stepFunctions)),
      inputSpecs(std::move(specs)),
      options(std::move(captureOptions)),
      device(deviceOf(options.target)),
      storages(device.type()),
      recorder(storages),
      tracer({.target = options.target, .allDevices = false, .origin = nullptr}, recorder) {}

ir::Expected<ObservedStep> CapturedStep::Impl::observeStep(Tracer::Poison poison) {
  ObservedStep observed;
  tracer.setPoison(poison);
  recorder.beginStep();
  const bool isLast = poison == kPoisons.back();
  const auto run = [&] {
    const TracingScope scope(tracer);
    for (const at::Tensor& report : functions.loss(inputTensors)) {
      observed.reports.push_back(recorder.idOf(report));
    }
    for (const ModuleTensor& entry : moduleTensors.all()) {
      if (entry.role != ir::Role::kParameter || !entry.tensor.grad().defined()) continue;
      observed.gradients.emplace_back(storages.keyOf(entry.tensor.grad()), entry.name);
      if (isLast) gradients.emplace_back(entry.tensor, entry.tensor.grad());
    }
    recorder.beginUpdate();
    functions.update();
  };
  if (ir::Error error = callTorch("while capturing " + options.name, run)) {
    return preferRefusal(std::move(error), tracer);
  }
  observed.trace = recorder.endStep();
  return observed;
}

ir::Error CapturedStep::Impl::observeSteps() {
  const DeterministicMode deterministic(options.target.deterministic);
  for (const Tracer::Poison poison : kPoisons) {
    ir::Expected<ObservedStep> observed = observeStep(poison);
    if (!observed) return observed.takeError();
    steps.push_back(std::move(*observed));
    if (functions.optimizer != nullptr) {
      hostNumbers.push_back(OptimizerNumbers::of(*functions.optimizer));
    }
  }
  return ir::success();
}

ir::Error CapturedStep::Impl::compareSteps() {
  const StepTrace& last = steps.back().trace;
  for (size_t i = 1; i + 1 < steps.size(); ++i) {
    const std::string name = "step " + std::to_string(i + 1);
    ir::Error error = matchSteps(wholeStep(steps[i].trace, name),
                                 wholeStep(last, "step " + std::to_string(steps.size())), storages);
    if (error) return error;
  }
  return ir::success();
}

ir::Error CapturedStep::Impl::findStepScalars() {
  const StepTrace& last = steps.back().trace;
  for (const ScalarSite& site : scalarSites(last)) {
    const bool inUpdate = site.node >= last.updateBegin;
    const HostNumber number = numberAt(last, site);
    const bool differs = std::any_of(steps.begin() + 1, steps.end(), [&](const ObservedStep& step) {
      return !(numberAt(step.trace, site) == number);
    });
    if (!inUpdate && !differs) continue;
    scalarsOutsideUpdate = scalarsOutsideUpdate || !inUpdate;
    stepScalars.push_back(site);
  }
  return ir::success();
}

std::vector<KnownStorage> CapturedStep::Impl::knownStorages() const {
  std::vector<KnownStorage> known;
  std::unordered_set<StorageKey> seen, written;
  const StepTrace& last = steps.back().trace;
  for (const TracedNode& node : last.nodes) {
    for (const auto& write : node.writes) written.insert(last.tensors[write.value].storage);
  }
  const auto add = [&](StorageKey key, std::string name, ir::Role role, ir::TensorType type) {
    if (!seen.insert(key).second) return;
    const bool isMade = !storages.isReal(key) && key >= last.firstId;
    if (role == ir::Role::kParameter && !written.contains(key)) role = ir::Role::kFrozen;
    known.push_back({.key = key,
                     .name = std::move(name),
                     .role = role,
                     .persistent = role != ir::Role::kInput && !isMade,
                     .type = std::move(type)});
  };
  for (size_t i = 0; i < inputTensors.size(); ++i) {
    add(fakeId(inputTensors[i]), inputSpecs[i].name, ir::Role::kInput,
        irType(shapeOf(inputTensors[i])));
  }
  for (const ModuleTensor& entry : moduleTensors.all()) {
    add(entry.id, entry.name, entry.role, irType(shapeOf(entry.tensor)));
  }
  if (functions.optimizer != nullptr) {
    for (const ModuleTensor& entry : moduleTensors.all()) {
      if (entry.role != ir::Role::kParameter) continue;
      forEachStateTensor(*functions.optimizer, entry.tensor,
                         [&](const char* function, ir::Role role, at::Tensor& tensor) {
                           add(fakeId(tensor), std::string(function) + "(" + entry.name + ")", role,
                               irType(shapeOf(tensor)));
                         });
    }
  }
  for (const auto& [parameter, gradient] : gradients) {
    const ModuleTensor* entry = moduleTensors.find(fakeId(parameter));
    add(fakeId(gradient), "grad(" + entry->name + ")", ir::Role::kGradient,
        irType(shapeOf(gradient)));
  }
  return known;
}

void CapturedStep::Impl::assemble() {
  const ObservedStep& last = steps.back();
  StepRecord record{.step = last.trace, .storages = storages, .known = knownStorages(),
                    .scopes = {}, .stepScalars = stepScalars, .reports = last.reports,
                    .outputGradients = options.keepGradients};
  PathOfStorage paths;
  for (const ModuleTensor& entry : moduleTensors.all()) {
    paths.emplace(entry.id, modulePathOf(entry.name));
  }
  record.scopes = assignScopes(last.trace, paths);
  for (const ReadBack& readBack : last.trace.readBacks) record.reports.push_back(readBack.tensor);
  assembled = assembleGraph(record, options.name,
                            {.producer = "torch " TORCH_VERSION,
                             .recipe = options.recipe,
                             .device = ir::deviceKindName(options.target.device),
                             .target = options.target.profile,
                             .stepsCaptured = kCapturedSteps});
}

ir::Expected<std::unique_ptr<CapturedStep>> captureStep(StepFunctions functions,
                                                        std::vector<InputSpec> inputs,
                                                        CaptureOptions options) {
  auto impl = std::make_unique<CapturedStep::Impl>(std::move(functions), std::move(inputs),
                                                   std::move(options));
  if (ir::Error error = checkDevice(impl->device)) return error;
  ir::Expected<ModuleTensors> found =
      ModuleTensors::find(impl->functions.module, impl->functions.optimizer);
  if (!found) return found.takeError();
  impl->moduleTensors = std::move(*found);
  if (impl->functions.optimizer != nullptr) {
    impl->hostNumbers.push_back(OptimizerNumbers::of(*impl->functions.optimizer));
  }
  impl->moduleTensors.swapIn(impl->device);
  impl->inputTensors = makeInputs(impl->inputSpecs, impl->device);
  // From here on the step's destructor puts the module's tensors back.
  auto step = std::make_unique<CapturedStep>(std::move(impl));
  CapturedStep::Impl& state = step->internals();
  if (ir::Error error = state.observeSteps()) return error;
  if (ir::Error error = state.compareSteps()) return error;
  if (ir::Error error = state.findStepScalars()) return error;
  state.assemble();
  return step;
}

}  // namespace stowage::runtime
