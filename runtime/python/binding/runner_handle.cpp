// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/binding/runner_handle.h"

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/python/binding/throw_error.h"
#include "runtime/session_impl.h"

namespace stowage::python {
namespace {

constexpr const char* kPythonsNote = "python";

std::string describe(const runtime::ArenaCopy& copy) {
  return nlohmann::ordered_json{{"bytes", copy.bytes.value()},
                                {"copy_ns", copy.copying.value()},
                                {"whole_ns", copy.whole.value()}}
      .dump();
}

}  // namespace

RunnerHandle::RunnerHandle(const c10::intrusive_ptr<PlanHandle>& plan,
                           std::vector<std::string> weights,
                           std::optional<c10::intrusive_ptr<RunnerHandle>> main,
                           int64_t mostHostBytes)
    : plan_(plan), main_(std::move(main)), step_(plan->step()->step()) {
  step_->internals().planner.reset();  // whoever plans again waits for it again
  if (plan->plan().graph().ranks() > 1 && !main_) {
    ranks_ = takeOrThrow(Ranks::tryJoin());
    if (ranks_->internals() != nullptr) {
      plan->setPlan(takeOrThrow(takeFirstRanksPlan(plan->plan(), *step_, *ranks_->internals())));
    }
  }
  const Plan::Impl& from = plan->plan().internals();
  runtime::RunnerOptions options;
  options.weights = std::move(weights);
  options.weightsMayLack = true;
  options.main = main_ ? (*main_)->runner_.get() : nullptr;
  options.mostHostBytes = Bytes(mostHostBytes);
  options.diskFolder = plan->options().diskFolder;
  options.mostDiskBytes = plan->options().limits.disk;
  options.verifyDisk = plan->verifiesDisk();
  if (ranks_) options.ranks = ranks_->internals();
  options.advance = [call = plan->step()->call()](int64_t steps) { call("advance", steps); };
  runner_ = takeOrThrow(runtime::Runner::create(*step_->internals().captured,
                                                {.graph = from.graph,
                                                 .schedule = from.file.schedule,
                                                 .target = from.file.target,
                                                 .costs = &from.costs},
                                                std::move(options)));
}

std::vector<at::Tensor> RunnerHandle::runStep(const std::vector<at::Tensor>& inputs,
                                              bool compareFirst) {
  if (compareFirst) runner_->compareFirst();
  ir::Expected<std::vector<at::Tensor>> reports = runner_->step(inputs);
  if (reports || !ranks_) return takeOrThrow(std::move(reports));
  // The others would wait for this one in their step.
  const ir::PlanError problem = ir::takePayload(reports.takeError());
  if (ir::Error error = runner_->finish()) llvm::consumeError(std::move(error));
  ranks_->internals()->giveUp(problem.text());
  throwError(ir::makeError(problem));
  return {};
}

void RunnerHandle::finish() { throwError(runner_->finish()); }

void RunnerHandle::takeTurn() { throwError(runner_->takeTurn()); }

void RunnerHandle::end() {
  runner_.reset();
  step_.reset();
}

void RunnerHandle::beginRead() { throwError(runner_->beginRead()); }

void RunnerHandle::endRead() { throwError(runner_->endRead()); }

/// Of a tensor without memory.
ir::StorageId RunnerHandle::storageOf(const at::Tensor& tensor) const {
  const auto& idOf = step_->internals().captured->internals().idOf;
  const auto known = idOf.find(runtime::fakeId(tensor));
  if (known == idOf.end()) {
    throwError(ir::makeError(ir::ErrorCode::kInvalidArgument,
                             "a tensor without memory is no part of this training"));
  }
  return known->second;
}

std::vector<at::Tensor> RunnerHandle::values(const std::vector<at::Tensor>& tensors) {
  std::unordered_map<runtime::FakeId, c10::Storage> storages;
  std::vector<at::Tensor> values;
  for (const at::Tensor& tensor : tensors) {
    const runtime::FakeId id = runtime::fakeId(tensor);
    if (id == 0) {
      values.push_back(tensor);
      continue;
    }
    c10::Storage& storage = storages[id];
    if (!storage) storage = takeOrThrow(runner_->value(storageOf(tensor))).storage();
    values.push_back(runtime::makeTensor(storage, runtime::shapeOf(tensor)));
  }
  return values;
}

void RunnerHandle::putValues(const std::vector<at::Tensor>& tensors,
                             const std::vector<at::Tensor>& values) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (runtime::fakeId(tensors[i]) == 0) continue;
    const at::Tensor whole = takeOrThrow(runner_->value(storageOf(tensors[i])));
    // A tensor may be a part of its storage.
    const runtime::TensorShape shape = runtime::shapeOf(tensors[i]);
    runtime::makeTensor(whole.storage(), shape).copy_(values.at(i));
    throwError(runner_->putValue(storageOf(tensors[i]), whole));
  }
}

std::string RunnerHandle::releaseArena() { return describe(takeOrThrow(runner_->release())); }

std::string RunnerHandle::restoreArena() { return describe(takeOrThrow(runner_->restore())); }

void RunnerHandle::storeBack() { throwError(runner_->storeTo()); }

void RunnerHandle::save(const std::string& folder, const std::string& note) {
  runner_->keepNote(kPythonsNote, note);
  throwError(runner_->save(folder));
}

int64_t RunnerHandle::load(const std::string& folder) {
  return takeOrThrow(runner_->load(folder)).steps;
}

std::string checkpointNote(const std::string& folder) {
  const runtime::Checkpoint checkpoint = takeOrThrow(runtime::Checkpoint::open(folder));
  const auto& notes = checkpoint.progress().notes;
  const auto note = notes.find(kPythonsNote);
  if (note == notes.end()) {
    throwError(checkpoint.badFile(
        "the checkpoint has no numbers of Python's optimizers: it was not written by save() of "
        "Python"));
  }
  return note->second;
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
