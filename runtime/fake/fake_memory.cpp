// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/fake_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/executor/run_accesses.h"

namespace stowage::runtime {

FakeMemory::FakeMemory(llvm::ArrayRef<ir::Arena> sizes) {
  for (const ir::Arena& arena : sizes) {
    arenas[static_cast<size_t>(arena.space)].assign(static_cast<size_t>(arena.bytes.value()),
                                                    kFreedByte);
  }
}

llvm::MutableArrayRef<uint8_t> FakeMemory::range(ir::Space space, int64_t offset, Bytes bytes) {
  return llvm::MutableArrayRef<uint8_t>(arenas[static_cast<size_t>(space)])
      .slice(static_cast<size_t>(offset), static_cast<size_t>(bytes.value()));
}

FakeProgramState::FakeProgramState(const ProgramSource& programSource, FakeMemory& deviceMemory)
    : source(programSource), memory(deviceMemory) {
  for (const ir::Command& command : source.schedule.commands) {
    const auto needed = static_cast<size_t>(std::max(command.rngSlot + 1, 0));
    if (slots.size() < needed) slots.resize(needed);
  }
}

llvm::MutableArrayRef<uint8_t> FakeProgramState::bytesOf(ir::ResidencyId residency) {
  const ir::Residency& place = source.schedule.residency(residency);
  return memory.range(place.space, place.offset, source.graph.storage(place.storage).bytes);
}

FakeWork::FakeWork(FakeProgramState& program, ir::CommandId command,
                   std::vector<ScalarValue> scalars)
    : program_(program), id_(command), scalars_(std::move(scalars)) {}

void FakeWork::begin() {
  const ir::Command& command = program_.source.schedule.command(id_);
  if (command.kind == ir::CommandKind::kRun) return beginLaunch(command);
  const auto from = program_.bytesOf(command.from);
  noteRead(from);
  watched_.push_back({from, from.vec()});
  results_.push_back(from.vec());
  targets_.push_back(program_.bytesOf(command.to));
  poison(targets_.back());
}

// What the launch does not need is poisoned before it reads, what it needs afterwards: a result or
// a temp region that wrongly lies on an operand then shows in the result.
void FakeWork::beginLaunch(const ir::Command& command) {
  const auto accesses = accessesOf(program_.source.graph, command);
  std::vector<Read> reads = findPlaces(command);
  if (command.temp.bytes.value() > 0) {
    temporaries_ =
        program_.memory.range(ir::Space::kDevice, command.temp.offset, command.temp.bytes);
    poison(temporaries_);
  }
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (!landsOnOperand(command, accesses[i])) poison(targets_[i]);
  }
  std::vector<ByteVector> before(accesses.size());
  for (const Read& read : reads) {
    noteRead(read.place);
    before[read.access] = read.place.vec();
  }
  runKernel(command, before);
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (landsOnOperand(command, accesses[i])) poison(targets_[i]);
  }
  // An operand under the result is watched as the result.
  for (Read& read : reads) {
    ByteVector& expected = before[read.access];
    if (std::equal(read.place.begin(), read.place.end(), expected.begin())) {
      watched_.push_back({read.place, std::move(expected)});
    }
  }
}

std::vector<FakeWork::Read> FakeWork::findPlaces(const ir::Command& command) {
  const auto accesses = accessesOf(program_.source.graph, command);
  size_t nextIn = 0;
  size_t nextOut = 0;
  std::vector<Read> reads;
  targets_.resize(accesses.size());
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].reads()) reads.push_back({i, program_.bytesOf(command.in[nextIn++])});
    if (accesses[i].writes()) targets_[i] = program_.bytesOf(command.out[nextOut++]);
  }
  return reads;
}

bool FakeWork::landsOnOperand(const ir::Command& command, const ir::Access& access) const {
  if (!access.writes() || access.reads()) return access.writes();
  if (!command.takes.isValid()) return false;
  const ir::Graph& graph = program_.source.graph;
  const ir::ValueId result = graph.node(command.node).results.front();
  return result.isValid() && graph.value(result).storage == access.storage;
}

void FakeWork::runKernel(const ir::Command& command, llvm::ArrayRef<ByteVector> before) {
  FakeGenerator& generator = program_.memory.generator;
  const FakeGenerator running = generator;
  const bool isRecompute = command.recompute > 0;
  if (command.rngSlot >= 0) {
    FakeGenerator& slot = program_.slots[static_cast<size_t>(command.rngSlot)];
    (isRecompute ? generator : slot) = isRecompute ? slot : running;
  }
  results_ = runFakeKernel(program_.source.graph, command.node,
                           accessesOf(program_.source.graph, command), before, scalars_, generator);
  if (command.rngSlot >= 0 && isRecompute) generator = running;
}

// Results may come out right by luck: two wrongs, or bytes that are the same as before.
void FakeWork::noteRead(llvm::ArrayRef<uint8_t> place) {
  constexpr size_t kTooFewToTell = 8;
  if (place.size() < kTooFewToTell || (place[0] != kFreedByte && place[0] != kPendingByte)) return;
  readsNothing_ = readsNothing_ || std::count(place.begin(), place.end(), place[0]) ==
                                       static_cast<int64_t>(place.size());
}

void FakeWork::poison(llvm::MutableArrayRef<uint8_t> place) {
  std::fill(place.begin(), place.end(), kPendingByte);
  watched_.push_back({place, place.vec()});
}

ir::Error FakeWork::check() const {
  if (readsNothing_) {
    return ir::makeError(ir::ErrorCode::kInternal, describe() + " reads bytes that hold nothing");
  }
  for (const Operand& operand : watched_) {
    if (!std::equal(operand.place.begin(), operand.place.end(), operand.expected.begin())) {
      return ir::makeError(ir::ErrorCode::kInternal, "bytes changed while " + describe() + " ran");
    }
  }
  return ir::success();
}

// Temporaries are used until the end, so they are written last.
ir::Error FakeWork::write() {
  for (size_t i = 0; i < targets_.size(); ++i) {
    std::copy(results_[i].begin(), results_[i].end(), targets_[i].begin());
  }
  std::fill(temporaries_.begin(), temporaries_.end(), kFreedByte);
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (!std::equal(targets_[i].begin(), targets_[i].end(), results_[i].begin())) {
      return ir::makeError(ir::ErrorCode::kInternal,
                           "results or temporaries of " + describe() + " lie on each other");
    }
  }
  return ir::success();
}

std::vector<FakeResult> FakeWork::hashes() const {
  const ir::Command& command = program_.source.schedule.command(id_);
  if (command.kind == ir::CommandKind::kCopy) return {};
  return hashResults(accessesOf(program_.source.graph, command), results_);
}

std::string FakeWork::describe() const {
  const ir::Command& command = program_.source.schedule.command(id_);
  const std::string name = "c" + std::to_string(id_.raw());
  if (command.kind == ir::CommandKind::kCopy) return name + " (copy)";
  return name + " (" + program_.source.graph.describeNode(command.node) + ")";
}

}  // namespace stowage::runtime
