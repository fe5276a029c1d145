// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/retrace_feed.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

/// The element that `value` is of its storage's bytes.
std::optional<c10::Scalar> readElement(const ir::Value& value, llvm::ArrayRef<uint8_t> bytes) {
  const int64_t width = ir::elementBytes(value.type.dtype);
  const int64_t first = value.type.offset * width;
  if (value.type.numElements() != 1 || first + width > static_cast<int64_t>(bytes.size())) {
    return std::nullopt;
  }
  const at::Tensor element = at::empty({}, toScalarType(value.type.dtype));
  std::memcpy(element.data_ptr(), bytes.data() + first, static_cast<size_t>(width));
  return element.item();
}

}  // namespace

RetraceFeed::RetraceFeed(RunnableStep& captured, const StepMatch& match, CheckedSteps checked)
    : captured_(captured), order_(match.scalars()), checked_(checked) {
  for (const ir::ScalarId id : order_) {
    const ir::StepScalar& scalar = captured.graph().scalars()[id.index()];
    values_.push_back({scalar.isInteger, scalar.value, scalar.integer});
  }
  if (checked_.every == 0) return;
  read_ = captured.valuesRead();
  if (!read_.empty()) checked_.every = 1;
  told_.resize(read_.size());
  for (size_t read = 0; read < read_.size(); ++read) {
    const ir::StorageId planned = match.plannedOf(captured.graph().value(read_[read]).storage);
    if (!planned.isValid()) continue;
    wanted_.push_back(planned);
    readOf_.push_back(read);
  }
}

RetraceFeed::~RetraceFeed() {
  endTelling();
  if (pending_.valid()) pending_.wait();
}

bool RetraceFeed::checksStep(int64_t step) const { return checked_.contains(step); }

bool RetraceFeed::comparesStep(int64_t step) const {
  return checked_.contains(step) && captured_.canBeChecked(stepsBefore_ + step);
}

void RetraceFeed::tell(size_t index, std::optional<llvm::ArrayRef<uint8_t>> bytes) {
  const size_t read = readOf_[index];
  const ir::Value& value = captured_.graph().value(read_[read]);
  const std::lock_guard lock(mutex_);
  told_[read].isOver = true;
  if (bytes) told_[read].value = readElement(value, *bytes);
  changed_.notify_all();
}

void RetraceFeed::endTelling() {
  const std::lock_guard lock(mutex_);
  for (Told& told : told_) told.isOver = true;
  changed_.notify_all();
}

std::optional<c10::Scalar> RetraceFeed::valueOfRead(size_t read) {
  if (read >= told_.size()) return std::nullopt;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return told_[read].isOver; });
  return told_[read].value;
}

/// What changed may have changed in a step that nobody compared.
void RetraceFeed::noteUnchecked(int64_t step, ir::PlanError& error) const {
  if (lastChecked_ + 1 >= step) return;
  // In messages steps count from 1.
  error.note("steps " + std::to_string(lastChecked_ + 2) + " to " + std::to_string(step) +
             " were not compared with the code: if it changed before this one, they ran as "
             "captured; go back to a checkpoint from before them. All are compared with "
             "checkEvery = 1 and a declared host state");
}

RetraceFeed::Answer RetraceFeed::retrace(int64_t step) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const bool whole = comparesStep(step);
  StepCheck check{.whole = whole};
  if (whole) check.valueOfRead = [this](size_t read) { return valueOfRead(read); };
  Answer answer;
  ir::Expected<std::vector<ScalarValue>> values = captured_.nextScalars(check);
  if (values) {
    for (const ir::ScalarId id : order_) answer.values.push_back((*values)[id.index()]);
    if (whole) lastChecked_ = step;
  } else {
    answer.error = ir::takePayload(values.takeError());
    if (whole) noteUnchecked(step, *answer.error);
  }
  answer.took = Nanoseconds(std::chrono::nanoseconds(Clock::now() - begin).count());
  return answer;
}

void RetraceFeed::begin(int64_t step) {
  endTelling();
  if (pending_.valid()) pending_.wait();
  // What the plan has no place for is never told.
  for (Told& told : told_) told = {.isOver = true, .value = {}};
  for (const size_t read : readOf_) told_[read].isOver = false;
  const at::ThreadLocalState settings;
  const auto work = std::make_shared<std::packaged_task<Answer()>>([this, step, settings] {
    const at::ThreadLocalStateGuard sameSettings(settings);
    return retrace(step);
  });
  pending_ = work->get_future();
  thread_.push([work] { (*work)(); });
}

ir::Expected<llvm::ArrayRef<ScalarValue>> RetraceFeed::join() {
  endTelling();
  if (pending_.valid()) {
    Answer answer = pending_.get();
    if (answer.error) return ir::makeError(std::move(*answer.error));
    values_ = std::move(answer.values);
    took_[joined_++ % took_.size()] = answer.took;
  }
  return llvm::ArrayRef<ScalarValue>(values_);
}

std::optional<Nanoseconds> RetraceFeed::typicalTime() const {
  if (joined_ < took_.size()) return std::nullopt;
  auto sorted = took_;
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace stowage::runtime
