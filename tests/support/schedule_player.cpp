// SPDX-License-Identifier: Apache-2.0
#include "tests/support/schedule_player.h"

#include <algorithm>
#include <array>
#include <random>
#include <tuple>
#include <vector>

namespace stowage::tests {

namespace {

constexpr int64_t kCell = 64;
constexpr int kSteps = 3;

// What a cell holds: a version of a storage, counted on over the steps. -1: nothing.
struct Content {
  int32_t storage = -1;
  int64_t version = -1;
  friend bool operator==(const Content&, const Content&) = default;
};

struct Cell {
  Content content;
  int readers = 0;
  int writers = 0;
};

class Player {
 public:
  Player(const ir::Graph& graph, const ir::Target& target, const ir::Schedule& schedule,
         uint64_t seed)
      : graph_(graph), target_(target), schedule_(schedule), random_(seed) {}

  std::string play() {
    if (!runsEachNodeOnce()) return "some node does not run exactly once";
    fillBoundary();
    time();
    for (const auto& [when, isStart, global] : events_) {
      isStart ? start(global) : end(global);
      if (!error_.empty()) return error_;
    }
    return "";
  }

 private:
  size_t count() const { return schedule_.commands.size(); }
  const ir::Command& command(size_t global) const { return schedule_.commands[global % count()]; }

  bool runsEachNodeOnce() const {
    std::vector<int> launches(graph_.nodes().size(), 0);
    for (const ir::Command& command : schedule_.commands) {
      if (command.kind == ir::CommandKind::kRun && command.recompute == 0)
        ++launches[command.node.index()];
    }
    return std::all_of(launches.begin(), launches.end(), [](int n) { return n == 1; });
  }

  void fillBoundary() {
    for (const ir::BoundaryEntry& entry : schedule_.boundary) {
      for (const ir::ResidencyId id : entry.at) {
        for (Cell& cell : cellsOf(id)) cell.content = {entry.storage.raw(), 0};
      }
    }
  }

  // Start and end of every command of all steps.
  void time() {
    std::vector<int64_t> ends(kSteps * count(), 0);
    std::array<int64_t, ir::kStreamCount> free{};
    int64_t latest = 0;
    for (size_t global = 0; global < ends.size(); ++global) {
      const size_t base = global - global % count();
      if (global % count() == 0 && schedule_.joined) free.fill(latest);
      const ir::Command& current = command(global);
      int64_t& stream = free[static_cast<size_t>(current.stream)];
      int64_t begin = stream;
      for (const ir::CommandId id : current.wait) begin = std::max(begin, ends[base + id.index()]);
      for (const ir::CommandId id : current.prev) {
        if (base > 0) begin = std::max(begin, ends[base - count() + id.index()]);
      }
      if (random_() % 4 == 0) begin += static_cast<int64_t>(random_() % 50);
      ends[global] = stream = begin + 1 + static_cast<int64_t>(random_() % 100);
      latest = std::max(latest, stream);
      events_.push_back({begin, true, global});
      events_.push_back({stream, false, global});
    }
    std::sort(events_.begin(), events_.end());  // at one time, ends come before starts
  }

  llvm::MutableArrayRef<Cell> cells(ir::Space space, int64_t offset, int64_t bytes) {
    std::vector<Cell>& arena = arenas_[static_cast<size_t>(space)];
    const auto end = static_cast<size_t>((offset + bytes + kCell - 1) / kCell);
    if (arena.size() < end) arena.resize(end);
    const auto begin = static_cast<size_t>(offset / kCell);
    return llvm::MutableArrayRef<Cell>(arena).slice(begin, end - begin);
  }
  llvm::MutableArrayRef<Cell> cellsOf(ir::ResidencyId id) {
    const ir::Residency& residency = schedule_.residency(id);
    const Bytes bytes = roundUp(graph_.storage(residency.storage).bytes, target_.alignBytes);
    return cells(residency.space, residency.offset, bytes.value());
  }
  llvm::MutableArrayRef<Cell> tempOf(const ir::Command& run) {
    return cells(ir::Space::kDevice, run.temp.offset, run.temp.bytes.value());
  }

  // Persistent storages count their versions on from step to step, inputs and what is never written
  // do not change, and what a step makes for itself is of no use in the next.
  int64_t countOn(ir::StorageId storage, int32_t version, size_t step) const {
    const int64_t last = graph_.lastVersion(storage);
    if (graph_.storage(storage).role == ir::Role::kInput) return version;
    return version +
           static_cast<int64_t>(step) * (graph_.storage(storage).persistent ? last : 1000);
  }

  void start(size_t global) {
    const ir::Command& current = command(global);
    if (current.kind == ir::CommandKind::kCopy) {
      read(current.from, global);
      write(current.to, global);
      return;
    }
    size_t in = 0;
    for (const ir::Access& access : graph_.accesses(current.node)) {
      if (!access.reads()) continue;
      expect(current.in[in++], access, global);
    }
    for (const ir::ResidencyId id : current.in) read(id, global);
    for (const ir::ResidencyId id : current.out) write(id, global);
    for (Cell& cell : tempOf(current)) lock(cell, global);
  }

  void expect(ir::ResidencyId id, const ir::Access& access, size_t global) {
    const Content expected{access.storage.raw(),
                           countOn(access.storage, access.readVersion, global / count())};
    for (const Cell& cell : cellsOf(id)) {
      if (!(cell.content == expected)) complain(global, "finds other bytes than it expects", id);
    }
  }

  void read(ir::ResidencyId id, size_t global) {
    for (Cell& cell : cellsOf(id)) {
      if (cell.writers > 0) complain(global, "reads while another writes", id);
      ++cell.readers;
    }
  }

  void write(ir::ResidencyId id, size_t global) {
    const ir::Command& current = command(global);
    const bool isOwn = llvm::is_contained(current.in, id) || current.takes.isValid();
    for (Cell& cell : cellsOf(id)) {
      const int others = cell.readers - (isOwn && cell.readers > 0 ? 1 : 0);
      if (cell.writers > 0 || others > 0) complain(global, "writes what is in use", id);
      ++cell.writers;
    }
  }

  void lock(Cell& cell, size_t global) {
    if (cell.writers > 0 || cell.readers > 0) complain(global, "has temporaries in use", {});
    ++cell.writers;
    cell.content = {};
  }

  void end(size_t global) {
    const ir::Command& current = command(global);
    if (current.kind == ir::CommandKind::kCopy) {
      const llvm::ArrayRef<Cell> source = cellsOf(current.from);
      const Content content = source.empty() ? Content{} : source.front().content;
      for (Cell& cell : cellsOf(current.from)) --cell.readers;
      finishWrite(current.to, content);
      return;
    }
    for (const ir::ResidencyId id : current.in) {
      for (Cell& cell : cellsOf(id)) --cell.readers;
    }
    size_t out = 0;
    for (const ir::Access& access : graph_.accesses(current.node)) {
      if (!access.writes()) continue;
      finishWrite(
          current.out[out++],
          {access.storage.raw(), countOn(access.storage, access.writtenVersion, global / count())});
    }
    for (Cell& cell : tempOf(current)) --cell.writers;
  }

  void finishWrite(ir::ResidencyId id, Content content) {
    for (Cell& cell : cellsOf(id)) {
      --cell.writers;
      cell.content = content;
    }
  }

  void complain(size_t global, const std::string& what, ir::ResidencyId id) {
    if (!error_.empty()) return;
    error_ = "c" + std::to_string(global % count()) + " of step " +
             std::to_string(global / count()) + " " + what +
             (id.isValid() ? " in r" + std::to_string(id.raw()) : "");
  }

  const ir::Graph& graph_;
  const ir::Target& target_;
  const ir::Schedule& schedule_;
  std::mt19937_64 random_;
  std::vector<std::tuple<int64_t, bool, size_t>> events_;  // time, is a start, command
  std::array<std::vector<Cell>, 3> arenas_;
  std::string error_;
};

}  // namespace

std::string playSchedule(const ir::Graph& graph, const ir::Target& target,
                         const ir::Schedule& schedule, uint64_t seed) {
  return Player(graph, target, schedule, seed).play();
}

}  // namespace stowage::tests
