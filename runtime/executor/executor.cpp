// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/executor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/executor/check_executable.h"

namespace stowage::runtime {

namespace {

const InputBytes* findInput(llvm::ArrayRef<InputBytes> inputs, ir::StorageId storage) {
  const auto* found = std::find_if(inputs.begin(), inputs.end(), [&](const InputBytes& input) {
    return input.storage == storage;
  });
  return found == inputs.end() ? nullptr : found;
}

}  // namespace

ir::Expected<std::unique_ptr<Executor>> Executor::create(Device& device, const PlanSource& source) {
  if (ir::Error error = checkExecutable(source.graph, source.schedule, source.target)) return error;
  for (const ir::Arena& arena : source.schedule.arenas) {
    if (arena.bytes > device.arenaBytes(arena.space)) {
      return ir::makeError(ir::ErrorCode::kPlanMismatch,
                           std::string("the plan needs ") + std::to_string(arena.bytes.value()) +
                               " bytes of " + spaceName(arena.space) + " memory, the device has " +
                               std::to_string(device.arenaBytes(arena.space).value()));
    }
  }
  auto plan = makeEnqueuePlan(source.graph, source.schedule);
  if (!plan) return plan.takeError();
  if (plan->needsScalars && source.feed == nullptr) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "the step has " + std::to_string(source.graph.scalars().size()) +
                             " step scalars and no feed for them");
  }
  auto program =
      device.load({source.graph, source.schedule, source.target, source.costs, plan->eventCount});
  if (!program) return program.takeError();
  device.takeTurn(nullptr);  // loading has changed it
  return std::unique_ptr<Executor>(
      new Executor(device, source, std::move(*plan), std::move(*program)));
}

Executor::Executor(Device& device, const PlanSource& source, EnqueuePlan plan,
                   std::unique_ptr<Program> program)
    : device_(device),
      source_(source),
      plan_(std::move(plan)),
      program_(std::move(program)),
      lossState_(device, source.graph, source.schedule, plan_.writtenByLoss) {
  for (auto& slot : outputs_) {
    for (const OutputPort& port : plan_.outputs) {
      slot.emplace_back(static_cast<size_t>(port.bytes.value()));
    }
  }
  for (const ir::StepScalar& scalar : source.graph.scalars()) {
    capturedScalars_.push_back({scalar.isInteger, scalar.value, scalar.integer});
  }
  if (source.feed == nullptr) return;
  for (const ir::StorageId wanted : source.feed->wanted()) {
    wantedOutputs_.push_back(plan_.findOutput(wanted));
  }
}

// Queued work points into this object.
Executor::~Executor() { llvm::consumeError(device_.synchronize()); }

ir::Expected<int64_t> Executor::enqueueStep(llvm::ArrayRef<InputBytes> inputs) {
  if (ir::Error error = checkRunning()) return error;
  if (ir::Error error = checkInputs(inputs)) return error;
  if (ir::Error error = enqueue(inputs)) return stop(std::move(error));
  if (unbegun_) return ir::makeError(*std::exchange(unbegun_, std::nullopt));
  hasPending_ = false;
  if (refusal_) return endWithoutUpdates();
  hasPending_ = plan_.defersUpdates;
  if (hasPending_) pendingScalars_ = scalars_.vec();
  return nextStep_++;
}

// As a turn of its own: nothing else is under way before and after it.
ir::Error Executor::runPending() {
  if (!hasPending_) return ir::success();
  firstStepOfTurn_ = nextStep_;
  if (ir::Error error = program_->beginStep(passOf(nextStep_))) return error;
  launches_ = Launches::kDeferred;
  for (size_t i = 0; i < plan_.records.size(); ++i) {
    if (ir::Error error = enqueueCommand(ir::CommandId(i), /*delivers=*/false)) return error;
  }
  if (ir::Error error = device_.synchronize()) return error;
  ++pendingRuns_;
  hasPending_ = false;
  return ir::success();
}

ir::Error Executor::endWithoutUpdates() {
  if (ir::Error error = device_.synchronize()) return stop(std::move(error));
  const std::string movedOn = enqueuedBeforeRefusal_ ? lossState_.restore() : "";
  stopped_ = std::exchange(refusal_, std::nullopt);
  stopped_->note("step " + std::to_string(nextStep_ + 1) +
                 " was ended without its updates; the state is that of the step before" + movedOn +
                 " and can still be saved or stored back");
  endedWithoutUpdates_ = true;
  return ir::makeError(*stopped_);
}

ir::Error Executor::enqueue(llvm::ArrayRef<InputBytes> inputs) {
  if (ir::Error error = startTurn()) return error;
  // Events and outputs have two places each, by the step's parity.
  if (nextStep_ - 2 >= firstStepOfTurn_) {
    for (const StreamEnd& end : plan_.stepEnd) {
      if (ir::Error error = program_->waitOnHost({end.event, passOf(nextStep_ - 2)})) return error;
    }
  }
  lossState_.forget();
  if (canEndWithoutUpdates() && source_.feed != nullptr && source_.feed->checksStep(nextStep_)) {
    if (ir::Error error = lossState_.save()) return error;
  }
  if (source_.feed != nullptr) source_.feed->begin(nextStep_);
  scalars_ = {};
  isJoined_ = false;
  launches_ = hasPending_ ? Launches::kAll : Launches::kNotDeferred;
  if (source_.feed != nullptr && source_.feed->comesFirst()) {
    if (ir::Error error = joinFeed(/*enqueued=*/0)) {
      unbegun_ = ir::takePayload(std::move(error));
      return ir::success();
    }
  }
  if (ir::Error error = bindInputs(inputs)) return error;
  if (ir::Error error = readUnwrittenOutputs()) return error;
  if (ir::Error error = program_->beginStep(passOf(nextStep_))) return error;
  if (source_.schedule.joined && nextStep_ > firstStepOfTurn_) {
    if (ir::Error error = joinStreams()) return error;
  }
  if (source_.schedule.graphMode != ir::GraphMode::kNone) {
    if (ir::Error error = enqueueArrivals(inputs)) return error;
  }
  return enqueueCommands();
}

ir::Error Executor::startTurn() {
  if (!device_.takeTurn(this)) return ir::success();
  firstStepOfTurn_ = nextStep_;
  if (ir::Error error = device_.synchronize()) return error;
  return program_->beginTurn();
}

// Wrong inputs are the caller's mistake: found before anything is enqueued, so they stop nothing.
ir::Error Executor::checkInputs(llvm::ArrayRef<InputBytes> inputs) const {
  if (inputs.size() != plan_.inputs.size()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument, "found " + std::to_string(inputs.size()) +
                                                              " inputs, expected " +
                                                              std::to_string(plan_.inputs.size()));
  }
  for (const InputPort& port : plan_.inputs) {
    const InputBytes* found = findInput(inputs, port.storage);
    const std::string& name = source_.graph.storage(port.storage).name;
    if (found == nullptr) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument, "input '" + name + "' is missing");
    }
    if (found->bytes.size() != static_cast<size_t>(port.bytes.value())) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           "input '" + name + "' has " + std::to_string(found->bytes.size()) +
                               " bytes, expected " + std::to_string(port.bytes.value()));
    }
  }
  return ir::success();
}

ir::Error Executor::bindInputs(llvm::ArrayRef<InputBytes> inputs) {
  const bool arrive = source_.schedule.graphMode != ir::GraphMode::kNone;
  for (const InputPort& port : plan_.inputs) {
    if (arrive && port.copiedOn) continue;  // enqueueArrivals
    if (ir::Error error = bindInput(port, findInput(inputs, port.storage)->bytes)) return error;
  }
  return ir::success();
}

ir::Error Executor::bindInput(const InputPort& port, llvm::ArrayRef<uint8_t> bytes) {
  if (nextStep_ > firstStepOfTurn_) {
    for (const int32_t event : port.users) {
      if (ir::Error error = program_->waitOnHost({event, passOf(nextStep_ - 1)})) return error;
    }
  }
  return device_.write(ir::Space::kHost, port.hostOffset, bytes);
}

// The host does not wait for the graph that reads the inputs of the step before: the bytes are
// kept, and follow on the stream that reads them when that graph is done.
ir::Error Executor::enqueueArrivals(llvm::ArrayRef<InputBytes> inputs) {
  auto& kept = arrivals_[static_cast<size_t>(nextStep_ % 2)];
  kept.resize(plan_.inputs.size());
  for (size_t k = 0; k < plan_.inputs.size(); ++k) {
    const InputPort& port = plan_.inputs[k];
    if (!port.copiedOn) continue;
    const llvm::ArrayRef<uint8_t> bytes = findInput(inputs, port.storage)->bytes;
    kept[k].assign(bytes.begin(), bytes.end());
    const Arrival arrival{*port.copiedOn, port.hostOffset, kept[k]};
    if (ir::Error error = program_->accept(arrival)) return error;
  }
  return ir::success();
}

// Nothing of a joined step runs beside the next one: every stream waits for all others.
ir::Error Executor::joinStreams() {
  for (const StreamEnd& waiting : plan_.stepEnd) {
    for (const StreamEnd& end : plan_.stepEnd) {
      if (end.stream == waiting.stream) continue;
      const EventRef last{end.event, passOf(nextStep_ - 1)};
      if (ir::Error error = program_->wait(waiting.stream, last)) return error;
    }
  }
  return ir::success();
}

ir::Error Executor::enqueueCommands() {
  const size_t end = plan_.records.size();
  const size_t recorded = source_.schedule.graphMode == ir::GraphMode::kWhole ? end
                          : source_.schedule.graphMode == ir::GraphMode::kNoUpdate
                              ? plan_.firstUpdate
                              : 0;
  if (recorded > 0) {
    if (ir::Error error = enqueueSegment(recorded)) return error;
  }
  return enqueueRange(recorded, end);
}

ir::Error Executor::enqueueSegment(size_t end) {
  const Segment segment{ir::CommandId(size_t{0}), ir::CommandId(end)};
  // What is recorded has the step's numbers in it. Nothing is enqueued yet: without them this step
  // can always be left out.
  if (plan_.firstUpdate < end) {
    if (ir::Error error = joinFeed(/*enqueued=*/0)) {
      refusal_ = ir::takePayload(std::move(error));
      return ir::success();
    }
  }
  auto mode = program_->beginSegment(segment, scalars_);
  if (!mode) return mode.takeError();
  if (*mode == SegmentMode::kRecord) ++recordings_;
  if (*mode != SegmentMode::kLaunch) {
    const bool delivers = *mode == SegmentMode::kEnqueue;
    for (size_t i = 0; i < end; ++i) {
      if (ir::Error error = enqueueCommand(ir::CommandId(i), delivers)) return error;
    }
  }
  if (ir::Error error = program_->endSegment(segment)) return error;
  return *mode == SegmentMode::kEnqueue ? ir::success() : deliverAfterSegment(end);
}

// What is recorded is the same in every step, but outputs leave to alternating places.
ir::Error Executor::deliverAfterSegment(size_t end) {
  for (size_t i = 0; i < end; ++i) {
    const EnqueueRecord& record = plan_.records[i];
    if (record.output < 0) continue;
    if (ir::Error error = deliver(record)) return error;
    if (ir::Error error = program_->record(record.stream, {record.event, passOf(nextStep_)}))
      return error;
  }
  return ir::success();
}

ir::Error Executor::enqueueRange(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (i == plan_.firstUpdate) {
      if (ir::Error error = joinOrLeaveOut(i)) return error;
    }
    if (ir::Error error = enqueueCommand(ir::CommandId(i), /*delivers=*/true)) return error;
  }
  // A step that updates nothing: what the feed says of it must not be lost.
  return plan_.firstUpdate == end ? joinOrLeaveOut(end) : ir::success();
}

bool Executor::canEndWithoutUpdates() const {
  return plan_.canEndWithoutUpdates && !(plan_.emptiesState && nextStep_ == 0);
}

// Without the step's own numbers what is no update runs with captured ones: nothing keeps it.
ir::Error Executor::joinOrLeaveOut(size_t enqueued) {
  ir::Error error = joinFeed(enqueued);
  if (!error || !canEndWithoutUpdates()) return error;
  refusal_ = ir::takePayload(std::move(error));
  enqueuedBeforeRefusal_ = true;
  scalars_ = capturedScalars_;
  return ir::success();
}

// Before the first update and not earlier: until here the values are worked out beside the step.
// When that fails, no update has been enqueued; the model's values are those of the step before.
ir::Error Executor::joinFeed(size_t enqueued) {
  if (source_.feed == nullptr || std::exchange(isJoined_, true)) return ir::success();
  if (ir::Error error = tellFeed(enqueued)) return error;
  auto values = source_.feed->join();
  if (!values) return values.takeError();
  if (values->size() != source_.graph.scalars().size()) {
    return ir::makeError(ir::ErrorCode::kInternal,
                         "found " + std::to_string(values->size()) + " step scalars, expected " +
                             std::to_string(source_.graph.scalars().size()));
  }
  scalars_ = *values;
  return ir::success();
}

ir::Error Executor::enqueueCommand(ir::CommandId id, bool delivers) {
  const EnqueueRecord& record = plan_.records[id.index()];
  if (ir::Error error = enqueueWaits(record)) return error;
  // Of what is left out the waits and the event stay: others rely on them.
  if (isLeftOut(record)) {
  } else if (record.kind == ir::CommandKind::kRun) {
    const llvm::ArrayRef<ScalarValue> scalars =
        record.isDeferred ? llvm::ArrayRef(pendingScalars_) : scalars_;
    if (ir::Error error = program_->run(id, scalars)) return error;
  } else {
    if (ir::Error error = program_->copy(id)) return error;
  }
  if (delivers && record.output >= 0) {
    if (ir::Error error = deliver(record)) return error;
  }
  if (record.event < 0) return ir::success();
  return program_->record(record.stream, {record.event, passOf(nextStep_)});
}

bool Executor::isLeftOut(const EnqueueRecord& record) const {
  if (refusal_ && record.updates) return true;
  if (launches_ == Launches::kAll) return false;
  const bool onlyPending = launches_ == Launches::kDeferred;
  if (record.kind == ir::CommandKind::kRun) return record.isDeferred != onlyPending;
  return onlyPending ? !record.copiesPending : !record.copiesWithoutPending;
}

ir::Error Executor::enqueueWaits(const EnqueueRecord& record) {
  for (const int32_t event : record.waitFor) {
    if (ir::Error error = program_->wait(record.stream, {event, passOf(nextStep_)})) return error;
  }
  if (nextStep_ == firstStepOfTurn_) return ir::success();
  for (const int32_t event : record.waitPrev) {
    if (ir::Error error = program_->wait(record.stream, {event, passOf(nextStep_ - 1)}))
      return error;
  }
  return ir::success();
}

ir::Error Executor::wait() {
  if (endedWithoutUpdates_) return ir::success();
  if (ir::Error error = checkRunning()) return error;
  if (ir::Error error = device_.synchronize()) return stop(std::move(error));
  return ir::success();
}

ir::Error Executor::finish() {
  if (ir::Error error = wait()) return error;
  if (ir::Error error = runPending()) return stop(std::move(error));
  return ir::success();
}

// What already runs is let finish, so that nobody touches bytes after the error is out.
ir::Error Executor::stop(ir::Error error) {
  // Values that the feed waits for do not come any more.
  for (size_t k = 0; k < wantedOutputs_.size(); ++k) source_.feed->tell(k, std::nullopt);
  program_->abandonSegment();
  llvm::consumeError(device_.synchronize());
  stopped_ = ir::takePayload(std::move(error));
  stopped_->note(
      "a step did not end; the state since the last save is lost: go on from that save, if there "
      "is one");
  return ir::makeError(*stopped_);
}

ir::Error Executor::checkRunning() const {
  return stopped_ ? ir::makeError(*stopped_) : ir::success();
}

}  // namespace stowage::runtime
