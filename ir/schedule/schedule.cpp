// SPDX-License-Identifier: Apache-2.0
#include "ir/schedule/schedule.h"

#include <array>

#include "ir/graph/graph.h"

namespace stowage::ir {

namespace {

constexpr std::array<const char*, 4> kLevelNames = {"ordered", "copied", "placed", "synced"};
static_assert(static_cast<size_t>(Level::kSynced) + 1 == kLevelNames.size());

constexpr std::array<const char*, kStreamCount> kStreamNames = {
    "compute", "d2h", "h2d", "disk_read", "disk_write", "host", "collective"};
static_assert(static_cast<size_t>(Stream::kCollective) + 1 == kStreamNames.size());

constexpr std::array<const char*, 4> kGapActionNames = {"keep", "host", "disk", "recompute"};
static_assert(static_cast<size_t>(GapAction::kRecompute) + 1 == kGapActionNames.size());

constexpr std::array<const char*, 3> kGraphModeNames = {"none", "no_update", "whole"};
static_assert(static_cast<size_t>(GraphMode::kWhole) + 1 == kGraphModeNames.size());

template <typename Enum, size_t kCount>
std::optional<Enum> findByName(const std::array<const char*, kCount>& names, llvm::StringRef name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

const char* levelName(Level level) { return kLevelNames[static_cast<size_t>(level)]; }
std::optional<Level> findLevel(llvm::StringRef name) {
  return findByName<Level>(kLevelNames, name);
}

const char* streamName(Stream stream) { return kStreamNames[static_cast<size_t>(stream)]; }
std::optional<Stream> findStream(llvm::StringRef name) {
  return findByName<Stream>(kStreamNames, name);
}

const char* gapActionName(GapAction action) { return kGapActionNames[static_cast<size_t>(action)]; }
std::optional<GapAction> findGapAction(llvm::StringRef name) {
  return findByName<GapAction>(kGapActionNames, name);
}

const char* graphModeName(GraphMode mode) { return kGraphModeNames[static_cast<size_t>(mode)]; }
std::optional<GraphMode> findGraphMode(llvm::StringRef name) {
  return findByName<GraphMode>(kGraphModeNames, name);
}

bool endsGraph(const Node& node) {
  return updatesModel(node.phase) || firstStepScalar(node).has_value();
}

Bytes Schedule::arenaBytes(Space space) const {
  for (const Arena& arena : arenas) {
    if (arena.space == space) return arena.bytes;
  }
  return Bytes(0);
}

}  // namespace stowage::ir
