// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/binding/runner_handle.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/python/binding/throw_error.h"
#include "runtime/session_impl.h"

namespace stowage::python {

RunnerHandle::RunnerHandle(const c10::intrusive_ptr<PlanHandle>& plan)
    : plan_(plan), step_(plan->step()->step()) {
  const Plan::Impl& from = plan->plan().internals();
  runner_ = takeOrThrow(
      runtime::Runner::create(*step_.internals().captured, {.graph = from.graph,
                                                            .schedule = from.file.schedule,
                                                            .target = from.file.target,
                                                            .costs = &from.costs}));
}

std::vector<at::Tensor> RunnerHandle::runStep(const std::vector<at::Tensor>& inputs) {
  return takeOrThrow(runner_->step(inputs));
}

void RunnerHandle::finish() { throwError(runner_->finish()); }

void RunnerHandle::read(int64_t pythonCall) {
  const PythonCall call(pythonCall);
  throwError(runner_->read([&] { call("look"); }));
}

void RunnerHandle::storeBack() { throwError(runner_->storeTo()); }

void RunnerHandle::save(const std::string& folder) { throwError(runner_->save(folder)); }

int64_t RunnerHandle::load(const std::string& folder) {
  return takeOrThrow(runner_->load(folder)).steps;
}

std::string RunnerHandle::facts() {
  nlohmann::ordered_json json = {{"steps", runner_->stepsDone()},
                                 {"arena_bytes", runner_->arenaBytes().value()}};
  if (const auto peak = runner_->peak()) json["peak_bytes"] = peak->value();
  if (const auto outside = runner_->memoryOutside()) json["outside_bytes"] = outside->value();
  if (const auto trace = runner_->scalarsTime()) json["trace_ns"] = trace->value();
  return json.dump();
}

}  // namespace stowage::python
