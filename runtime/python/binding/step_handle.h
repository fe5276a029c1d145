// SPDX-License-Identifier: Apache-2.0
//
// A training step of Python: described by names and tensors, captured by calling back into Python,
// then planned. The class `torch.classes.stowage.Step` of Python, all of whose methods are one
// call of ours; what they mean to a user is stowage/_capture.py's.
// While Python is called back (PythonCall), it takes `arguments` and gives `report`, `answer*`
// here. Not here: plans and runs (plan_handle.h, runner_handle.h).
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_STEP_HANDLE_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_STEP_HANDLE_H_

#include <torch/custom_class.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/python/binding/python_call.h"
#include "runtime/python/binding/python_optimizer.h"
#include "runtime/session.h"

namespace stowage::python {

class StepHandle : public torch::CustomClassHolder {
 public:
  explicit StepHandle(int64_t pythonCall) : call_(pythonCall) {}

  // The description, before capture.
  void addParameter(const std::string& path, at::Tensor tensor);
  void addBuffer(const std::string& path, at::Tensor tensor);
  void addOptimizer(std::vector<at::Tensor> parameters);
  /// `device`: "cpu", "cuda", or a profile of a GPU that need not be here. `eachStep`: numbers of
  /// forward and backward may change from step to step. `ranks`: processes that train together.
  void capture(const std::string& device, std::vector<std::string> inputNames,
               std::vector<at::Tensor> examples, bool eachStep, int64_t ranks);
  /// A further step of `main`, which is captured and holds the same objects' tensors.
  void captureFurther(const c10::intrusive_ptr<StepHandle>& main,
                      std::vector<std::string> inputNames, std::vector<at::Tensor> examples,
                      bool eachStep, bool trains);
  /// The live objects get back what they held before the capture.
  void release();

  // While Python is called back.
  std::vector<at::Tensor> arguments() const { return arguments_; }
  /// The values of the inputs in the step that is traced now, on the CPU.
  void setInputValues(std::vector<at::Tensor> values) { inputValues_ = std::move(values); }
  void report(std::vector<at::Tensor> tensors) { reported_ = std::move(tensors); }
  void noteUpdate();
  /// Until the next call: tensors of no dimension on the CPU are host numbers, of which some only
  /// take values of the step.
  void setHostNumbers(bool areHostNumbers, bool takeValues);
  /// Is it a tensor of a step that is captured?
  bool holdsNoMemory(const at::Tensor& tensor) const;
  void answerTensors(std::vector<std::string> names, std::vector<at::Tensor> tensors);
  void answerNumbers(std::vector<double> numbers);
  std::vector<double> askedNumbers() const { return answer_.numbers; }

  // Of the captured step.
  std::string graphText() const;
  std::string describe() const;  // JSON: device, nodes, storages, state and input bytes

  bool isCaptured() const { return step_.has_value(); }
  Step& step();
  const PythonCall& call() const { return call_; }

 private:
  std::vector<at::Tensor> runWhole(const std::vector<at::Tensor>& inputs,
                                   const runtime::NoteUpdate& noteUpdate);
  void captureStep(detail::AnyStep step, std::vector<std::string> inputNames,
                   std::vector<at::Tensor> examples, bool eachStep);
  torch::nn::Module& ownerOf(const std::string& path, std::string& name);

  PythonCall call_;
  std::shared_ptr<torch::nn::Module> module_;
  std::vector<std::vector<at::Tensor>> optimizers_;
  PythonAnswer answer_;
  std::vector<at::Tensor> arguments_, inputValues_, reported_;
  runtime::NoteUpdate noteUpdate_;
  std::optional<Step> main_;  // of a further step, which it outlives
  std::string device_;
  std::optional<Step> step_;
};

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_STEP_HANDLE_H_
