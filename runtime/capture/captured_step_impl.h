// SPDX-License-Identifier: Apache-2.0
//
// What a CapturedStep keeps: the closures, the tensors without memory, the recorded steps, the
// graph. Private to capture.cpp (which fills it) and captured_step.cpp (which answers from it).
#ifndef STOWAGE_RUNTIME_CAPTURE_CAPTURED_STEP_IMPL_H_
#define STOWAGE_RUNTIME_CAPTURE_CAPTURED_STEP_IMPL_H_

#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/capture/capture.h"
#include "runtime/capture/dispatch/tracer.h"
#include "runtime/capture/graph/first_values.h"
#include "runtime/capture/graph/graph_assembly.h"
#include "runtime/capture/graph/known_values.h"
#include "runtime/capture/host_state/before_capture.h"
#include "runtime/capture/host_state/module_modes.h"
#include "runtime/capture/host_state/module_tensors.h"
#include "runtime/capture/host_state/optimizer_state.h"
#include "runtime/capture/host_state/outside_tensors.h"
#include "runtime/capture/trace/step_diff.h"
#include "runtime/capture/trace/step_recorder.h"

namespace stowage::runtime {

/// Steps that capture runs: the first creates state, the others must be the same step. One that
/// reads values with item() runs twice more.
inline constexpr int kCapturedSteps = 4;

/// Where values are read, the last step has the answers of this one again.
inline constexpr size_t kRepeatedStep = 1;

/// One step as it ran during capture.
struct ObservedStep {
  StepTrace trace;
  std::vector<ir::ValueId> reports;
};

/// What code asked of values that follow from the inputs, and was told.
struct Assumed {
  ir::ValueId tensor;
  std::optional<SizeQuestion> question;  // none: the elements
  std::vector<double> answer;
};

struct CapturedStep::Impl {
  Impl(StepFunctions stepFunctions, std::vector<InputSpec> inputSpecs,
       CaptureOptions captureOptions);

  ir::Error prepare();
  ir::Error observeSteps();
  ir::Error observeNext(Tracer::Poison poison);
  ir::Error compareSteps();
  void collectReads();
  ir::Error findStepScalars();
  ir::Error checkReadsOfLoss() const;
  bool isMadeByUpdate(const ReadBack& read) const;
  bool isKept(const at::Tensor& tensor) const;
  bool comesFromRead(const ScalarSite& site) const;
  ir::Error checkOwners() const;
  ir::Error checkTrainedOutside() const;
  ir::Error checkInputsAreRead() const;
  ir::Error checkReports() const;
  ir::Error assemble();
  ir::Error checkRewind();

  /// Of a further step (further_step.cpp).
  bool isFurther() const { return functions.main != nullptr; }
  ir::Error findShared();
  void wake();
  void sleep();
  /// Is a tensor without memory part of this step's state?
  bool holds(const at::Tensor& tensor) const;
  ir::StorageId findReal(const c10::Storage& storage) const;
  /// Does the step keep what this gradient holds from step to step?
  bool keepsGradient(const at::Tensor& gradient) const;

  ir::Expected<ObservedStep> observeStep(Tracer::Poison poison);
  /// Traces what `run` runs of the closures. Trainings of one process take turns.
  ir::Error trace(const std::string& what, const std::function<ir::Error()>& run);
  /// Both closures, as one step.
  ir::Error runStep(ObservedStep& observed);
  /// Tensors of this step alone, in the place of the inputs.
  std::vector<at::Tensor> argumentsOfLoss();
  /// The gradients that backward has left.
  void noteGradients();
  ir::Error runWhole(ObservedStep& observed);
  /// Runs `loss` and notes what it reports, and the gradients it leaves.
  ir::Error runLoss(ObservedStep& observed);
  /// Did `loss` return scalars, and did it run backward?
  ir::Error checkLoss(const std::vector<at::Tensor>& returned) const;
  bool isLeftOver(const at::Tensor& gradient) const;
  /// While a plan runs (retrace.cpp).
  ir::Expected<std::vector<ScalarValue>> scalarsByTracing(const StepCheck& check);
  bool ranInCapture(size_t step) const;
  ir::Expected<StepTrace> traceWhileRunning(const std::string& what,
                                            const std::function<ir::Error()>& run);
  /// Runs `update`, which is the step's or a part of it, on the gradients of the last step.
  ir::Expected<StepTrace> traceUpdate(const std::function<void()>& update);
  ir::Expected<StepTrace> traceOptimizersAlone();
  ir::Expected<ObservedStep> traceWhole(const StepCheck& check);
  ir::Error compareWhole(const ObservedStep& again);
  ir::Error compareFixedNumbers(const StepTrace& again) const;
  std::string placeOf(size_t node) const;
  std::vector<ScalarValue> scalarsIn(const StepTrace& again, size_t begin) const;
  std::optional<c10::Scalar> valueOfRead(const StepCheck& check);
  std::optional<KnownValue> findKnown(const at::Tensor& tensor, KnownFor purpose);
  std::optional<c10::Scalar> knownValueOf(const at::Tensor& tensor);
  std::optional<std::vector<int64_t>> numbersOf(const at::Tensor& tensor);
  std::optional<int64_t> sizeOf(const at::Tensor& tensor, SizeQuestion question);
  InputValues inputValues() const;
  void noteAssumed(const at::Tensor& tensor, std::optional<SizeQuestion> question,
                   std::vector<double> answer);
  void endTrace(StepTrace trace);
  /// Of the steps that ran during capture (first_scalars.cpp).
  ir::Expected<std::vector<ScalarValue>> scalarsOfFirstSteps(size_t step);
  ir::Expected<std::vector<ScalarValue>> scalarsChangedByHand(size_t step);
  ir::Expected<std::vector<ScalarValue>> replaceScalars(size_t step, const StepTrace& asCaptured,
                                                        const StepTrace& now) const;
  std::optional<size_t> findInUpdate(const StepTrace& part) const;
  std::vector<ScalarValue> scalarsSeenIn(size_t step) const;
  bool wasConstant(const ScalarSite& site) const;
  ir::Error checkFirstTraced(const OptimizerNumbers& before,
                             const std::vector<ScalarValue>& now) const;
  void rewindHost();
  /// Of tensors that the step writes and that neither module nor optimizer holds.
  ir::Error storeOutsideTensors(const ValueOf& bytesOf);
  /// Gives memory to the gradients that the step keeps; drops the others.
  ir::Error storeGradients(const ValueOf& bytesOf);
  void restoreModule();

  const ModuleTensor* moduleTensorOf(ir::StorageId storage) const;
  const StorageFacts& factsOf(ir::StorageId storage) const;

  StepFunctions functions;
  std::vector<InputSpec> inputSpecs;
  CaptureOptions options;
  c10::Device device;

  ModuleTensors moduleTensors;
  std::optional<BeforeCapture> before;
  ModuleModes modes;
  std::vector<std::pair<std::string, at::Tensor>> inputTensors;
  StorageTable storages;
  StepRecorder recorder;
  Tracer tracer;
  std::vector<ObservedStep> steps;                           // kCapturedSteps or two more
  std::vector<OptimizerNumbers> hostNumbers;                 // before step 1, after step 1, ...
  std::vector<unsigned> savedCounts;                         // of the schedulers, before step 1
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients;  // parameter, gradient of the last step

  std::vector<ScalarSite> stepScalars;
  std::vector<ScalarSite> fixedNumbers;  // of `loss`: the plan keeps them
  std::vector<std::string> scopes;       // by node of the last step
  StoragePairs heldFromLoss;             // storages of the last trace of `loss` -> captured ones
  mutable OutsideTensors outside;        // as the plan took them
  std::vector<Assumed> assumed;          // of the last step of the capture
  bool isObserving = false;              // a step of the capture
  bool scalarsOutsideUpdate = false;
  std::optional<FirstValues> firstValues;
  AssembledGraph assembled;
  std::unordered_map<StorageKey, ir::StorageId> idOf;
  std::vector<ir::ValueId> inputs, reports, readBacks;
  size_t nextStep = 0;                     // of nextScalars, from 0
  bool begun = false;                      // somebody takes its steps
  std::optional<std::string> unknownRead;  // by the step that is traced again: where
  bool stored = false;                     // storeTo took the tensors back

  // Of a further step.
  std::vector<ir::StorageId> sharedWith;   // by own storage: the main step's
  GradientsOfParameters restingGradients;  // of whoever sleeps
  bool isAwake = false;
};

ScalarValue toScalarValue(const HostNumber& number);

/// Why a closure threw, in the step that `recorder` holds: a refusal says more than the exception
/// that it came out as, and a value that item() made up may be the reason for any other.
ir::Error explainThrown(ir::Error thrown, Tracer& tracer, const StepRecorder& recorder);

/// A step that changes at a node after it read a value changed because of it, most likely.
ir::Error explainByReads(ir::Error error, const StepTrace& step, size_t node);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_CAPTURED_STEP_IMPL_H_
