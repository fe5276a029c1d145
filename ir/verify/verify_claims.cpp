// SPDX-License-Identifier: Apache-2.0
//
// What the plan says of itself, recomputed: peaks, bytes moved and the budget (V20), times that are
// possible (V30). A prediction of zeros claims nothing. Times are only bounded from below here:
// that a step takes as long as predicted is shown by the timeline and by running it.
#include <algorithm>

#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

class ClaimCheck {
 public:
  ClaimCheck(const Facts& facts, Report& report)
      : facts_(facts), predicted_(facts.schedule.predicted), report_(report) {}

  void run() {
    const Bytes arena = facts_.schedule.arenaBytes(Space::kDevice);
    if (facts_.budget.value() > 0 && arena != facts_.budget) {
      report_.add(20, "device arena of " + std::to_string(arena.value()) +
                          " bytes, expected the budget, " + std::to_string(facts_.budget.value()));
    }
    if (predicted_ == Prediction{}) return;
    expectBytes("peak", predicted_.peakBytes, computePeak(Space::kDevice));
    expectBytes("host peak", predicted_.hostPeakBytes, computePeak(Space::kHost));
    expectBytes("bytes out", predicted_.bytesOut, computeMoved(Stream::kDeviceToHost));
    expectBytes("bytes in", predicted_.bytesIn, computeMoved(Stream::kHostToDevice));
    checkTimes();
  }

 private:
  void expectBytes(const std::string& what, Bytes claimed, Bytes found) {
    if (claimed == found) return;
    report_.add(20, what + " of " + std::to_string(claimed.value()) + " bytes claimed, expected " +
                        std::to_string(found.value()));
  }

  /// Highest byte that anything ever uses.
  Bytes computePeak(Space space) const {
    int64_t peak = 0;
    for (size_t i = 0; i < facts_.schedule.residencies.size(); ++i) {
      const ResidencyId id(i);
      const Residency& residency = facts_.schedule.residency(id);
      const bool isUsed = facts_.isHeld(id) || !facts_.usesOf(id).empty();
      if (residency.space != space || !isUsed) continue;
      peak = std::max(peak, residency.offset + facts_.size(id).value());
    }
    if (space != Space::kDevice) return Bytes(peak);
    for (const Command& command : facts_.schedule.commands) {
      if (command.temp.bytes.value() == 0) continue;
      peak = std::max(peak, command.temp.offset + command.temp.bytes.value());
    }
    for (const ReservedRegion& region : facts_.schedule.reserved) {
      if (region.bytes.value() == 0) continue;
      peak = std::max(peak, (region.offset + region.bytes).value());
    }
    return Bytes(peak);
  }

  /// Copies move whole residencies, rounded up to the alignment.
  Bytes copiedBytes(const Command& copy) const {
    return roundUp(facts_.storage(copy.from).bytes, facts_.target.alignBytes);
  }

  Bytes computeMoved(Stream engine) const {
    Bytes moved;
    for (const Command& command : facts_.schedule.commands) {
      const bool isCopy = command.kind == CommandKind::kCopy && command.stream == engine;
      if (isCopy) moved += copiedBytes(command);
    }
    return moved;
  }

  void checkTimes() {
    const bool claimsTimes = predicted_.stepTime.value() != 0 || predicted_.bound.value() != 0 ||
                             predicted_.computeTime.value() != 0;
    if (!claimsTimes) return;
    if (predicted_.bound > predicted_.stepTime) {
      report_.add(30, "step of " + std::to_string(predicted_.stepTime.value()) +
                          " ns claimed, below the bound of " +
                          std::to_string(predicted_.bound.value()) + " ns");
    }
    if (facts_.costs == nullptr) return;
    if (facts_.costs->nodes.size() != facts_.graph.nodes().size()) {
      report_.add(30, "costs of " + std::to_string(facts_.costs->nodes.size()) +
                          " nodes, expected " + std::to_string(facts_.graph.nodes().size()));
      return;
    }
    checkBusyTimes(*facts_.costs);
  }

  void checkBusyTimes(const NodeCosts& costs) {
    const Nanoseconds originals = costs.totalTime();
    if (predicted_.computeTime != originals) {
      report_.add(30, "compute time of " + std::to_string(predicted_.computeTime.value()) +
                          " ns claimed, expected " + std::to_string(originals.value()));
    }
    std::array<Nanoseconds, kStreamCount> busy{};
    for (const Command& command : facts_.schedule.commands) {
      busy[static_cast<size_t>(command.stream)] += timeOf(command, costs);
    }
    for (size_t i = 0; i < busy.size(); ++i) {
      if (busy[i] <= predicted_.stepTime) continue;
      report_.add(30, "step of " + std::to_string(predicted_.stepTime.value()) +
                          " ns claimed, but stream " + streamName(static_cast<Stream>(i)) +
                          " is busy for " + std::to_string(busy[i].value()) + " ns");
    }
  }

  static const LinkRate* findRate(const LinkModel& links, Stream engine) {
    if (engine == Stream::kDeviceToHost) return &links.deviceToHost;
    if (engine == Stream::kHostToDevice) return &links.hostToDevice;
    if (engine == Stream::kDiskRead) return &links.diskRead;
    return engine == Stream::kDiskWrite ? &links.diskWrite : nullptr;
  }

  /// The least time that a command takes its stream. Ops on the host have no cost of their own.
  Nanoseconds timeOf(const Command& command, const NodeCosts& costs) const {
    if (command.kind == CommandKind::kRun) {
      const size_t node = command.node.index();
      if (command.stream == Stream::kCompute) return costs.nodes[node].work;
      const bool isKnown = command.stream == Stream::kCollective && !costs.collectiveWork.empty();
      return isKnown ? costs.collectiveWork[node] : Nanoseconds(0);
    }
    const LinkRate* rate = findRate(costs.links, command.stream);
    if (rate == nullptr || rate->bandwidth.value() <= 0) return Nanoseconds(0);
    return rate->latency + transferTime(copiedBytes(command), rate->bandwidth);
  }

  const Facts& facts_;
  const Prediction& predicted_;
  Report& report_;
};

}  // namespace

void checkClaims(const Facts& facts, Report& report) { ClaimCheck(facts, report).run(); }

}  // namespace stowage::ir::verifier
