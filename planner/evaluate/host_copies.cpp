// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/host_copies.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace stowage::planner {

namespace {

constexpr int32_t kNothing = -1;

/// The nodes on the host that use a storage, as indices of host runs.
struct HostUses {
  int32_t writer = kNothing;  // the last one
  llvm::SmallVector<int32_t, 1> readers;
  int32_t firstRead = kNothing;  // the version that the first of them reads
};

/// Fills HostRun::before, too.
std::vector<HostUses> findHostUses(const ir::Graph& graph, Expansion& expansion) {
  std::vector<HostUses> uses;
  if (expansion.hostRuns.empty()) return uses;
  uses.resize(graph.storages().size());
  for (size_t i = 0; i < expansion.hostRuns.size(); ++i) {
    HostRun& run = expansion.hostRuns[i];
    for (const ir::Access& access : graph.accesses(run.node)) {
      HostUses& use = uses[access.storage.index()];
      if (use.writer != kNothing) run.before.push_back(use.writer);
      if (access.writes()) run.before.append(use.readers);
      if (access.writes()) use.writer = static_cast<int32_t>(i);
      if (!access.reads()) continue;
      if (use.readers.empty()) use.firstRead = access.readVersion;
      use.readers.push_back(static_cast<int32_t>(i));
    }
  }
  return uses;
}

// One storage's copies, in order of its live ranges.
class StorageCopies {
 public:
  StorageCopies(const GapTable& table, Expansion& expansion, ir::StorageId storage, HostUses uses)
      : uses_(std::move(uses)),
        storage_(table.problem().graph.storage(storage)),
        out_(expansion),
        history_(expansion.history[storage.index()]),
        host_(expansion.hostAtBoundary[storage.index()]),
        lastVersion_(table.problem().graph.lastVersion(storage)) {
    // What nodes on the host leave there for the next step; else they get what the device made.
    isHosts_ = storage_.persistent && uses_.writer != kNothing;
    wanted_ = uses_.readers.empty() ? lastVersion_ : uses_.firstRead;
    host_.always =
        storage_.role == ir::Role::kInput || isHosts_ || (storage_.persistent && lastVersion_ == 0);
    host_.needed = storage_.role == ir::Role::kInput || table.isHostOnly(storage);
    if (host_.always) held_ = 0;
  }

  void derive() {
    for (size_t i = crossesBoundary() ? 1 : 0; i < history_.size(); ++i) {
      if (const int32_t prefetch = liveRange(i).prefetch; prefetch >= 0) addPrefetch(prefetch, i);
    }
    resolveDeferred();
    if (!uses_.readers.empty()) host_.needed = true;
    if (storage_.output || !uses_.readers.empty()) addOutput();
    // An input is filled anew each step, so what the step copies there is gone at the next step
    // boundary.
    if (!host_.always && storage_.persistent && held_ == lastVersion_) host_.offload = heldBy_;
  }

 private:
  LiveRange& liveRange(size_t i) { return out_.liveRanges[static_cast<size_t>(history_[i])]; }
  bool crossesBoundary() { return history_.size() > 1 && history_.front() == history_.back(); }

  void addPrefetch(int32_t index, size_t position) {
    host_.needed = true;
    Prefetch& prefetch = out_.prefetches[static_cast<size_t>(index)];
    const bool fromLastStep = position == 0 || (position == 1 && crossesBoundary());
    prefetch.ofThisStep = position == 0 && !storage_.persistent;
    const size_t before = position == 0 ? history_.size() - 1 : position - 1;
    const int32_t shift = fromLastStep ? -1 : 0;
    // The next step's input is other bytes, which need not wait for this step's to go.
    prefetch.release = liveRange(prefetch.ofThisStep ? 0 : before).end + shift * out_.launchCount();
    const int32_t version = contentBefore(position);
    if (isHosts_) {  // in the step before: nobody reads it after the write
      prefetch.hostRun = uses_.writer;
      prefetch.sourceShift = -1;
      return;
    }
    if (held_ == version) {
      prefetch.source = heldBy_;
      prefetch.sourceShift = heldShift_;
      return;
    }
    if (version == 0) {  // made in the step before: known once the whole history is
      deferred_.push_back(index);
      return;
    }
    offload(before, version);
    heldShift_ = shift;
    prefetch.source = heldBy_;
    prefetch.sourceShift = shift;
  }

  int32_t contentBefore(size_t position) {
    if (position == 0) return 0;
    const LiveRange& before = liveRange(position - 1);
    // After the step boundary, a live range that crosses it holds version 0 until it is written.
    if (position == 1 && crossesBoundary() && before.lastWrite < out_.launchCount()) return 0;
    return before.version;
  }

  void offload(size_t position, int32_t version) {
    LiveRange& source = liveRange(position);
    assert(source.lastWrite >= 0 && "a live range that the host does not know was written");
    heldBy_ = static_cast<int32_t>(out_.offloads.size());
    heldShift_ = 0;
    held_ = version;
    source.offload = heldBy_;
    out_.offloads.push_back({.liveRange = history_[position], .after = source.lastWrite});
  }

  void resolveDeferred() {
    if (deferred_.empty()) return;
    if (held_ != lastVersion_) offload(history_.size() - 1, lastVersion_);
    for (const int32_t index : deferred_) {
      Prefetch& prefetch = out_.prefetches[static_cast<size_t>(index)];
      prefetch.source = heldBy_;
      prefetch.sourceShift = -1;
    }
  }

  void addOutput() {
    if (host_.always && host_.needed) return;
    host_.needed = true;
    if (held_ == wanted_ && heldBy_ != kNothing) return addWaiting(heldBy_);
    if (history_.empty()) return;
    size_t writer = history_.size() - 1;
    while (writer > 0 &&
           !(liveRange(writer).lastWrite >= 0 && liveRange(writer).version == wanted_)) {
      --writer;
    }
    const int32_t after = std::max(liveRange(writer).lastWrite, 0);
    const auto index = static_cast<int32_t>(out_.offloads.size());
    if (liveRange(writer).offload < 0) liveRange(writer).offload = index;
    out_.offloads.push_back({.liveRange = history_[writer], .after = after});
    addWaiting(index);
    if (held_ != wanted_) {
      held_ = wanted_;
      heldBy_ = index;
    }
  }

  /// Nodes on the host, or the caller, wait in this step for what an offload brings.
  void addWaiting(int32_t offload) {
    out_.offloads[static_cast<size_t>(offload)].isOutput = true;
    for (const int32_t reader : uses_.readers) {
      out_.hostRuns[static_cast<size_t>(reader)].offloads.push_back(offload);
    }
  }

  const HostUses uses_;
  const ir::Storage& storage_;
  Expansion& out_;
  llvm::SmallVectorImpl<int32_t>& history_;
  HostSource& host_;
  int32_t lastVersion_;
  int32_t wanted_ = 0;         // version that the caller, or a node on the host, needs there
  bool isHosts_ = false;       // nodes on the host write it, in each step
  int32_t held_ = kNothing;    // version that the host holds
  int32_t heldBy_ = kNothing;  // copy that brought it
  int32_t heldShift_ = 0;      // periods between that copy and this step
  llvm::SmallVector<int32_t, 2> deferred_;
};

}  // namespace

void deriveHostCopies(const GapTable& table, Expansion& expansion) {
  const size_t storages = table.problem().graph.storages().size();
  expansion.hostAtBoundary.resize(storages);
  std::vector<HostUses> uses = findHostUses(table.problem().graph, expansion);
  for (size_t i = 0; i < storages; ++i) {
    HostUses own = uses.empty() ? HostUses() : std::move(uses[i]);
    StorageCopies(table, expansion, ir::StorageId(i), std::move(own)).derive();
  }
}

}  // namespace stowage::planner
