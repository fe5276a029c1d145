// SPDX-License-Identifier: Apache-2.0
//
// What Python sees of this library: three classes, by libtorch's registry, so that no header of
// Python takes part and one build serves all its versions.
#include <torch/custom_class.h>
#include <torch/library.h>

#include "runtime/python/binding/environment.h"
#include "runtime/python/binding/plan_handle.h"
#include "runtime/python/binding/runner_handle.h"
#include "runtime/python/binding/step_handle.h"
#include "runtime/python/binding/without_memory_handle.h"

namespace stowage::python {
namespace {

TORCH_LIBRARY(stowage, library) {
  library.class_<StepHandle>("Step")
      .def(torch::init<int64_t>())
      .def("add_parameter", &StepHandle::addParameter)
      .def("add_buffer", &StepHandle::addBuffer)
      .def("add_optimizer", &StepHandle::addOptimizer)
      .def("capture", &StepHandle::capture)
      .def("capture_further", &StepHandle::captureFurther)
      .def("release", &StepHandle::release)
      .def("arguments", &StepHandle::arguments)
      .def("set_input_values", &StepHandle::setInputValues)
      .def("report", &StepHandle::report)
      .def("note_update", &StepHandle::noteUpdate)
      .def("set_host_numbers", &StepHandle::setHostNumbers)
      .def("holds_no_memory", &StepHandle::holdsNoMemory)
      .def("answer_tensors", &StepHandle::answerTensors)
      .def("answer_numbers", &StepHandle::answerNumbers)
      .def("asked_numbers", &StepHandle::askedNumbers)
      .def("graph_text", &StepHandle::graphText)
      .def("describe", &StepHandle::describe);
  library.class_<PlanHandle>("Plan")
      .def(torch::init<c10::intrusive_ptr<StepHandle>, std::string>())
      .def("summary_text", &PlanHandle::summaryText)
      .def("summary_json", &PlanHandle::summaryJson)
      .def("memory_svg", &PlanHandle::memorySvg)
      .def("smallest_budget", &PlanHandle::smallestBudget)
      .def("is_captured", &PlanHandle::isCaptured)
      .def("save", &PlanHandle::save);
  library.class_<RunnerHandle>("Runner")
      .def(torch::init<c10::intrusive_ptr<PlanHandle>, std::vector<std::string>,
                       std::optional<c10::intrusive_ptr<RunnerHandle>>, int64_t>())
      .def("step", &RunnerHandle::runStep)
      .def("is_stopped", &RunnerHandle::isStopped)
      .def("is_lost", &RunnerHandle::isLost)
      .def("finish", &RunnerHandle::finish)
      .def("take_turn", &RunnerHandle::takeTurn)
      .def("end", &RunnerHandle::end)
      .def("begin_read", &RunnerHandle::beginRead)
      .def("end_read", &RunnerHandle::endRead)
      .def("values", &RunnerHandle::values)
      .def("put_values", &RunnerHandle::putValues)
      .def("release", &RunnerHandle::releaseArena)
      .def("restore", &RunnerHandle::restoreArena)
      .def("is_released", &RunnerHandle::isReleased)
      .def("store_back", &RunnerHandle::storeBack)
      .def("save", &RunnerHandle::save)
      .def("load", &RunnerHandle::load)
      .def("facts", &RunnerHandle::facts);
  library.class_<WithoutMemoryHandle>("WithoutMemory")
      .def(torch::init<>())
      .def("end", &WithoutMemoryHandle::end);
  library.def("checkpoint_note(str folder) -> str",
              [](const std::string& folder) { return checkpointNote(folder); });
  library.def("environment() -> str", [] { return environment(); });
  library.def("launched_ranks() -> int", [] { return launchedRanks(); });
  library.def("plan_without_gpu(str profile) -> ()",
              [](const std::string& profile) { planWithoutGpu(profile); });
}

}  // namespace
}  // namespace stowage::python
