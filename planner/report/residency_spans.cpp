// SPDX-License-Identifier: Apache-2.0
#include "planner/report/residency_spans.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cassert>

#include "ir/base/units.h"

namespace stowage::planner {

const char* memoryGroupName(MemoryGroup group) {
  switch (group) {
    case MemoryGroup::kParameters:
      return "parameters";
    case MemoryGroup::kOptimizer:
      return "optimizer state";
    case MemoryGroup::kGradients:
      return "gradients";
    case MemoryGroup::kActivations:
      return "activations";
    case MemoryGroup::kTemporaries:
      break;
  }
  return "temporaries";
}

MemoryGroup memoryGroupOf(ir::Role role) {
  switch (role) {
    case ir::Role::kParameter:
    case ir::Role::kFrozen:
    case ir::Role::kBuffer:
    case ir::Role::kConstant:
    case ir::Role::kRng:
      return MemoryGroup::kParameters;
    case ir::Role::kState:
    case ir::Role::kMaster:
    case ir::Role::kStepCounter:
      return MemoryGroup::kOptimizer;
    case ir::Role::kGradient:
    case ir::Role::kPending:
      return MemoryGroup::kGradients;
    case ir::Role::kInput:
    case ir::Role::kActivation:
    case ir::Role::kOutput:
      break;
  }
  return MemoryGroup::kActivations;
}

int64_t sumOf(const GroupBytes& bytes) {
  int64_t sum = 0;
  for (const int64_t part : bytes) sum += part;
  return sum;
}

ResidencySpans::ResidencySpans(const ir::Graph& graph, const ir::Schedule& schedule,
                               int64_t alignBytes)
    : graph_(graph),
      schedule_(schedule),
      alignBytes_(alignBytes),
      spans_(schedule.residencies.size()) {
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    note(schedule.commands[i], static_cast<int64_t>(i));
  }
  for (const ir::BoundaryEntry& entry : schedule.boundary) {
    for (const ir::ResidencyId id : entry.at) spans_[id.index()].isCrossing = true;
  }
}

bool ResidencySpans::isThere(size_t residency, int64_t command) const {
  const Span& span = spans_[residency];
  if (schedule_.residencies[residency].space != ir::Space::kDevice) return false;
  if (!span.crosses()) {
    return span.define >= 0 && span.define <= command && command <= span.last;
  }
  if (span.define < 0) return true;
  return command >= span.define || command <= span.lastBefore;
}

bool ResidencySpans::isTaken(const ir::Command& run, size_t residency) {
  return run.takes.isValid() && run.takes.index() == residency;
}

// By differences: a look at all residencies for each command would be slow.
std::vector<GroupBytes> ResidencySpans::bytesByCommand() const {
  const size_t count = schedule_.commands.size();
  std::vector<GroupBytes> change(count + 1, GroupBytes{});
  const auto add = [&](int64_t from, int64_t to, size_t group, int64_t bytes) {
    if (from > to) return;
    change[static_cast<size_t>(from)][group] += bytes;
    change[static_cast<size_t>(to) + 1][group] -= bytes;
  };
  for (size_t r = 0; r < spans_.size(); ++r) {
    const Span& span = spans_[r];
    const ir::Residency& residency = schedule_.residencies[r];
    if (residency.space != ir::Space::kDevice) continue;
    const int64_t bytes = roundedBytes(residency.storage);
    const size_t group = groupOf(residency.storage);
    const auto end = static_cast<int64_t>(count) - 1;
    if (!span.crosses()) {
      if (span.define >= 0) add(span.define, span.last, group, bytes);
      continue;
    }
    add(std::max<int64_t>(span.define, 0), end, group, bytes);
    if (span.define >= 0) add(0, std::min(span.lastBefore, span.define - 1), group, bytes);
  }
  std::vector<GroupBytes> result(count);
  GroupBytes held{};
  for (size_t i = 0; i < count; ++i) {
    for (size_t group = 0; group < kMemoryGroupCount; ++group) held[group] += change[i][group];
    result[i] = held;
    const ir::Command& command = schedule_.commands[i];
    result[i][static_cast<size_t>(MemoryGroup::kTemporaries)] += command.temp.bytes.value();
    if (!command.takes.isValid()) continue;
    const ir::StorageId taken = schedule_.residency(command.takes).storage;
    result[i][groupOf(taken)] -= roundedBytes(taken);
  }
  return result;
}

void ResidencySpans::note(const ir::Command& command, int64_t at) {
  if (command.kind == ir::CommandKind::kCopy) {
    use(command.from, at);
    define(command.to, at);
    return;
  }
  for (const ir::ResidencyId id : command.in) use(id, at);
  for (const ir::ResidencyId id : command.out) {
    if (llvm::is_contained(command.in, id)) {
      use(id, at);
    } else {
      define(id, at);
    }
  }
}

void ResidencySpans::use(ir::ResidencyId id, int64_t at) {
  Span& span = spans_[id.index()];
  if (span.define < 0) span.lastBefore = at;
  span.last = at;
}

void ResidencySpans::define(ir::ResidencyId id, int64_t at) {
  Span& span = spans_[id.index()];
  if (span.define < 0) span.define = at;
  span.last = at;
}

int64_t ResidencySpans::roundedBytes(ir::StorageId storage) const {
  return roundUp(graph_.storage(storage).bytes, alignBytes_).value();
}

size_t ResidencySpans::groupOf(ir::StorageId storage) const {
  return static_cast<size_t>(memoryGroupOf(graph_.storage(storage).role));
}

}  // namespace stowage::planner
