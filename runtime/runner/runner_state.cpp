// SPDX-License-Identifier: Apache-2.0
//
// The runner's state in files, and what it can say about the memory that its steps used.
#include <ATen/ops/empty.h>

#include <utility>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/state_names.h"
#include "runtime/executor/boundary_state.h"
#include "runtime/memory/arena_spans.h"
#include "runtime/memory/canary.h"
#include "runtime/runner/runner_impl.h"
#include "runtime/torch/rng_keeper.h"

namespace stowage::runtime {

namespace {

/// The optimizer's own counts must be those that were saved; files have them as float32.
ir::Error compareCounts(const std::map<std::string, double>& found, const Checkpoint& checkpoint) {
  const std::map<std::string, double>& saved = checkpoint.progress().stepCounts;
  std::vector<std::string> notes;
  for (const auto& [parameter, count] : found) {
    const auto other = saved.find(parameter);
    if (other != saved.end() && other->second == static_cast<float>(count)) continue;
    const std::string there =
        other == saved.end() ? "none" : std::to_string(static_cast<int64_t>(other->second));
    notes.push_back("'" + parameter + "': found " + std::to_string(static_cast<int64_t>(count)) +
                    ", the checkpoint has " + there);
  }
  if (notes.empty()) return ir::success();
  ir::PlanError problem = ir::takePayload(
      checkpoint.badFile("the optimizer counts other steps than the checkpoint, which is of step " +
                             std::to_string(checkpoint.progress().steps),
                         ir::ErrorCode::kPlanMismatch));
  for (std::string& note : notes) problem.note(std::move(note));
  return ir::makeError(std::move(problem));
}

}  // namespace

ir::Error Runner::Impl::openWeights(const std::vector<std::string>& paths) {
  if (paths.empty()) return ir::success();
  ir::Expected<StateFiles> files = StateFiles::open(paths);
  if (!files) return files.takeError();
  StateFileOptions options;
  options.wants = [&](const ir::Storage& storage) {
    return isModelState(storage) && (!weightsMayLack || files->find(storage.name) != nullptr);
  };
  options.allowExtra = weightsMayLack;
  if (ir::Error error = files->check(plan.graph, options)) {
    ir::PlanError problem = ir::takePayload(std::move(error));
    return ir::makeError(problem.at({.file = paths.front()}));
  }
  weights = std::move(*files);
  return ir::success();
}

bool Runner::Impl::comesFromFile(const ir::Storage& storage) const {
  if (!weights || !isModelState(storage)) return false;
  return !weightsMayLack || weights->find(storage.name) != nullptr;
}

/// What the plan does without has a value, too, for whoever gets the module back.
ir::Error Runner::Impl::readUnusedWeights() {
  const ir::Graph& graph = captured.graph();
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const ir::StorageId id(i);
    const ir::Storage& storage = graph.storage(id);
    if (!storage.persistent || match.plannedOf(id).isValid() || !comesFromFile(storage)) continue;
    const SafetensorsEntry* entry = weights->find(storage.name);
    if (entry == nullptr) continue;
    at::Tensor bytes = at::empty({storage.bytes.value()}, at::kByte);
    const llvm::MutableArrayRef<uint8_t> into(bytes.data_ptr<uint8_t>(), bytes.nbytes());
    if (ir::Error error = weights->read(graph, id, {}, into)) return error;
    givenUnused.emplace(id, std::move(bytes));
  }
  return ir::success();
}

ir::Error Runner::Impl::readWeights() {
  if (!weights) return ir::success();
  StorageRoom room(plan.graph);
  for (size_t i = 0; i < plan.graph.storages().size(); ++i) {
    const ir::StorageId storage(i);
    const ir::Storage& info = plan.graph.storage(storage);
    if (!ir::isState(info) || !comesFromFile(info)) continue;
    const llvm::MutableArrayRef<uint8_t> bytes = room.ofWhole(storage);
    if (ir::Error error = weights->read(plan.graph, storage, {}, bytes)) return error;
    if (ir::Error error = putState(storage, bytes)) return error;
  }
  return readUnusedWeights();
}

void Runner::keepNote(const std::string& key, std::string note) {
  impl_->notes.insert_or_assign(key, std::move(note));
}

ir::Error Runner::save(const std::string& folder, int64_t dataPosition) {
  if (ir::Error error = impl_->checkOpen()) return error;
  if (ir::Error error = impl_->enter()) return error;
  if (ir::Error error = impl_->executor->finish()) return error;
  ir::Expected<std::vector<uint8_t>> generator = readGeneratorState(impl_->generatorDevice());
  if (!generator) return generator.takeError();
  HostProgress host = impl_->captured.hostProgress();
  TrainingProgress progress;
  progress.steps = stepsDone();
  progress.dataPosition = dataPosition < 0 ? progress.steps : dataPosition;
  progress.plan = fingerprintOf(impl_->plan);
  progress.learningRates = std::move(host.learningRates);
  progress.stepCounts = std::move(host.stepCounts);
  progress.generator = std::move(*generator);
  progress.notes = impl_->notes;
  return saveCheckpoint(*impl_->executor, folder, progress, impl_->ranks);
}

ir::Error Runner::Impl::catchUp(int64_t steps) {
  if (!captured.countsSteps()) return ir::success();
  for (int64_t done = 0; done < steps; ++done) {
    // The steps that ran during capture are answered from its record.
    if (advance && captured.canBeChecked(done)) {
      advance(steps - done);
      return ir::success();
    }
    if (stop && stop()) {
      return ir::makeError(ir::ErrorCode::kEnvironment,
                           "stopped after tracing " + std::to_string(done) + " of the " +
                               std::to_string(steps) + " steps that the checkpoint has done");
    }
    ir::Expected<std::vector<ScalarValue>> scalars = captured.nextScalars({});
    if (!scalars) return scalars.takeError();
  }
  return ir::success();
}

ir::Expected<ResumePoint> Runner::load(const std::string& folder) {
  if (ir::Error error = impl_->checkOpen()) return error;
  if (stepsDone() > 0) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "the runner has done steps already, expected a new one to resume with");
  }
  if (ir::Error error = impl_->enter()) return error;
  ir::Expected<Checkpoint> checkpoint = Checkpoint::open(folder);
  if (!checkpoint) return checkpoint.takeError();
  if (impl_->ranks != nullptr) {
    if (ir::Error error =
            impl_->ranks->between.agree("a digest of the checkpoint", checkpoint->digest())) {
      return error;
    }
  }
  const TrainingProgress& progress = checkpoint->progress();
  if (ir::Error error = checkGeneratorState(impl_->generatorDevice(), progress.generator)) {
    const ir::PlanError found = ir::takePayload(std::move(error));
    if (found.code() != ir::ErrorCode::kParse) return ir::makeError(found);
    return checkpoint->badGenerator(found.text());
  }
  const size_t groups = impl_->captured.hostProgress().learningRates.size();
  if (ir::Error error = checkpoint->checkRates(groups)) return error;
  if (ir::Error error = checkpoint->load(*impl_->executor, impl_->ranks)) return error;
  if (ir::Error error = impl_->begin()) return error;
  if (ir::Error error = impl_->catchUp(progress.steps)) return error;
  if (ir::Error error = compareCounts(impl_->captured.hostProgress().stepCounts, *checkpoint)) {
    return error;
  }
  impl_->captured.setLearningRates(progress.learningRates);
  if (ir::Error error = impl_->restoreGenerator(*checkpoint)) return error;
  impl_->stepsBefore = progress.steps;
  if (impl_->ownFeed) impl_->ownFeed->skip(progress.steps);
  return ResumePoint{.steps = progress.steps,
                     .dataPosition = progress.dataPosition,
                     .samePlan = progress.plan == fingerprintOf(impl_->plan)};
}

std::optional<Bytes> Runner::peak() const { return impl_->device->servedPeak(); }

ir::Expected<Bytes> Runner::highWaterMark() {
  if (ir::Error error = impl_->checkNotReleased()) return error;
  if (ir::Error error = impl_->executor->wait()) return error;
  return findHighWaterMark(arenaBytes(), [&](int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) {
    return impl_->device->read(ir::Space::kDevice, offset, bytes);
  });
}

ir::Error Runner::checkCanaries() {
  if (ir::Error error = impl_->checkNotReleased()) return error;
  if (impl_->shared || impl_->main != nullptr) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "several plans write to the arenas, expected one");
  }
  if (ir::Error error = impl_->executor->wait()) return error;
  for (const ir::Space space : {ir::Space::kDevice, ir::Space::kHost}) {
    const std::vector<ir::ByteRange> planned =
        plannedSpans(impl_->plan.graph, impl_->plan.schedule, impl_->plan.target, space);
    auto stray = findStrayByte(impl_->device->arenaBytes(space), planned,
                               [&](int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) {
                                 return impl_->device->read(space, offset, bytes);
                               });
    if (!stray) return stray.takeError();
    if (!*stray) continue;
    return ir::makeError(ir::ErrorCode::kInternal,
                         "byte " + std::to_string(**stray) + " of the " +
                             std::string(ir::spaceName(space)) +
                             " arena was written, and the plan has nothing there");
  }
  return ir::success();
}

ir::Error Runner::takeTimes(int64_t steps) { return impl_->executor->program().takeTimes(steps); }

ir::Expected<std::vector<ir::StepTimes>> Runner::takenTimes() {
  if (ir::Error error = impl_->executor->wait()) return error;
  return impl_->executor->program().takenTimes();
}

int64_t Runner::recordings() const { return impl_->executor->recordings(); }

std::optional<Nanoseconds> Runner::scalarsTime() const {
  return impl_->ownFeed ? impl_->ownFeed->typicalTime() : std::nullopt;
}
std::optional<Bytes> Runner::memoryOutside() const { return impl_->device->memoryOutside(); }

std::string Runner::transport() const { return impl_->device->transport(); }

int64_t Runner::allocationsOutside() const { return impl_->device->allocationsOutside(); }

}  // namespace stowage::runtime
