// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/dependencies.h"

#include <algorithm>

#include "planner/evaluate/byte_history.h"

namespace stowage::planner {

namespace {

constexpr int kSpaces = 3;
constexpr int kNoBytes = kSpaces;

// The step is walked twice; what the second walk finds in the first one lies a step back.
class Deriver {
 public:
  Deriver(const ir::Graph& graph, const ir::Target& target,
          llvm::ArrayRef<ir::Residency> residencies, llvm::ArrayRef<ir::Command> commands)
      : residencies_(residencies), commands_(commands) {
    sizes_.reserve(residencies.size());
    for (const ir::Residency& residency : residencies) {
      sizes_.push_back(roundUp(graph.storage(residency.storage).bytes, target.alignBytes).value());
    }
    result_.wait.resize(commands.size());
    result_.prev.resize(commands.size());
  }

  Dependencies derive() {
    const auto count = static_cast<GlobalCommand>(commands_.size());
    for (GlobalCommand command = 0; command < count; ++command) visit(command);
    for (GlobalCommand command = count; command < 2 * count; ++command) {
      report(command, visit(command));
    }
    return std::move(result_);
  }

 private:
  StreamClock visit(GlobalCommand global) {
    const ir::Command& command = commands_[static_cast<size_t>(global) % commands_.size()];
    StreamClock waits;
    waits.fill(-1);
    if (command.kind == ir::CommandKind::kCopy) {
      read(command.from, global, command.stream, waits);
      write(command.to, global, command.stream, waits);
      return waits;
    }
    for (const ir::ResidencyId id : command.in) read(id, global, command.stream, waits);
    for (const ir::ResidencyId id : command.out) write(id, global, command.stream, waits);
    if (command.temp.bytes == Bytes(0)) return waits;
    const ir::ByteRange temp{.begin = command.temp.offset,
                             .end = command.temp.offset + command.temp.bytes.value()};
    histories_[static_cast<size_t>(ir::Space::kDevice)].write(temp, global, command.stream, waits);
    return waits;
  }

  void read(ir::ResidencyId id, GlobalCommand global, ir::Stream stream, StreamClock& waits) {
    historyOf(id).read(rangeOf(id), global, stream, waits);
  }
  void write(ir::ResidencyId id, GlobalCommand global, ir::Stream stream, StreamClock& waits) {
    historyOf(id).write(rangeOf(id), global, stream, waits);
  }
  // A storage without bytes shares none with others, but is made before it is read, too: its
  // residencies stand side by side in a history of their own.
  bool hasNoBytes(ir::ResidencyId id) const { return sizes_[id.index()] == 0; }
  ByteHistory& historyOf(ir::ResidencyId id) {
    const auto space = static_cast<size_t>(residencies_[id.index()].space);
    return histories_[hasNoBytes(id) ? kNoBytes : space];
  }
  ir::ByteRange rangeOf(ir::ResidencyId id) const {
    if (hasNoBytes(id)) {
      const auto own = static_cast<int64_t>(id.index());
      return {.begin = own, .end = own + 1};
    }
    const int64_t offset = residencies_[id.index()].offset;
    return {.begin = offset, .end = offset + sizes_[id.index()]};
  }

  // Of two commands of one stream only the later one counts, whichever step it is in.
  void report(GlobalCommand global, const StreamClock& waits) {
    const auto count = static_cast<GlobalCommand>(commands_.size());
    const auto own = static_cast<size_t>(global - count);
    for (size_t s = 0; s < waits.size(); ++s) {
      const GlobalCommand other = waits[s];
      if (other < 0 || other >= global || s == static_cast<size_t>(commands_[own].stream)) continue;
      auto& list = other >= count ? result_.wait[own] : result_.prev[own];
      list.push_back(ir::CommandId(static_cast<size_t>(other % count)));
    }
    std::sort(result_.wait[own].begin(), result_.wait[own].end());
    std::sort(result_.prev[own].begin(), result_.prev[own].end());
  }

  llvm::ArrayRef<ir::Residency> residencies_;
  llvm::ArrayRef<ir::Command> commands_;
  std::vector<int64_t> sizes_;
  ByteHistory histories_[kSpaces + 1];
  Dependencies result_;
};

}  // namespace

Dependencies computeDependencies(const ir::Graph& graph, const ir::Target& target,
                                 llvm::ArrayRef<ir::Residency> residencies,
                                 llvm::ArrayRef<ir::BoundaryEntry> boundary,
                                 llvm::ArrayRef<ir::Command> commands) {
  // Where storages are valid at the boundary follows from the walk over two steps.
  static_cast<void>(boundary);
  return Deriver(graph, target, residencies, commands).derive();
}

}  // namespace stowage::planner
