// SPDX-License-Identifier: Apache-2.0
#include "planner/bound/bound_solver.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/bound/working_sets.h"
#include "planner/evaluate/copy_schedule.h"

namespace stowage::planner {

namespace {

constexpr size_t kMostPeaks = 16;
constexpr int64_t kSeparation = 48;  // peaks are at least this part of the step apart

double timePerByte(const ir::LinkRate& rate) {
  return 1e9 / static_cast<double>(rate.bandwidth.value());
}

// Runs visit(from, to) for the node ranges strictly inside of a gap.
template <typename Visitor>
void forEachInside(const Gap& gap, int64_t nodes, Visitor visit) {
  visit(gap.begin + 1, std::min(gap.end, nodes));
  if (gap.end > nodes) visit(0, gap.end - nodes);
}

}  // namespace

BoundSolver::BoundSolver(const GapTable& table)
    : table_(&table), workingSets_(computeWorkingSets(table.problem())) {
  const ir::LinkModel& links = table.problem().costs.links;
  frame_.outPerByte = timePerByte(links.deviceToHost);
  frame_.inPerByte = timePerByte(links.hostToDevice);
  frame_.timeBefore.push_back(0);
  for (size_t i = 0; i < table.nodeCount(); ++i) {
    // What collectives take from compute beside them depends on when they run.
    const bool isOnLink = table.collectiveTime(i) > 0;
    computeTime_ += isOnLink ? 0 : table.nodeTime(i);
    linkTime_ += table.collectiveTime(i);
    frame_.timeBefore.push_back(frame_.timeBefore.back() + static_cast<double>(table.nodeWork(i)));
  }
  for (const Nanoseconds work : table.problem().costs.hostWork) hostTime_ += work.value();
  boundaryTime_ = boundaryTime();
  findLoads();
  for (const int64_t node : choosePeaks()) peaks_.push_back(makePeak(node));
}

void BoundSolver::findLoads() {
  const auto nodes = static_cast<int64_t>(table_->nodeCount());
  std::vector<int64_t> all(table_->nodeCount() + 1, 0);
  std::vector<int64_t> fixed(table_->nodeCount() + 1, 0);
  for (const Gap& gap : table_->gaps()) {
    if (!gap.live || table_->isHostOnly(gap.storage)) continue;
    const int64_t bytes = table_->bytes(gap.storage);
    forEachInside(gap, nodes, [&](int64_t from, int64_t to) {
      if (from >= to) return;
      all[static_cast<size_t>(from)] += bytes;
      all[static_cast<size_t>(to)] -= bytes;
      if (gap.mayHost || gap.mayRecompute) return;
      fixed[static_cast<size_t>(from)] += bytes;
      fixed[static_cast<size_t>(to)] -= bytes;
    });
  }
  std::partial_sum(all.begin(), all.end(), all.begin());
  std::partial_sum(fixed.begin(), fixed.end(), fixed.begin());
  int64_t untouched = 0;  // there for ever
  for (size_t i = 0; i < table_->problem().lives.size(); ++i) {
    const ir::StorageId id(i);
    const bool isThere = table_->problem().graph.storage(id).persistent && !table_->isHostOnly(id);
    if (isThere && table_->gapCount(id) == 0) untouched += table_->bytes(id);
  }
  for (size_t i = 0; i < table_->nodeCount(); ++i) {
    workingSets_[i] += untouched;
    loads_.push_back(workingSets_[i] + all[i]);
    const int64_t needed = workingSets_[i] + fixed[i];
    if (needed <= smallestBudget_ && widestNode_.isValid()) continue;
    smallestBudget_ = needed;
    widestNode_ = ir::NodeId(i);
  }
}

// Inputs that are read must arrive and outputs that are made must leave in every step.
int64_t BoundSolver::boundaryTime() const {
  const ir::LinkModel& links = table_->problem().costs.links;
  int64_t in = 0;
  int64_t out = 0;
  for (size_t i = 0; i < table_->problem().lives.size(); ++i) {
    const ir::StorageId id(i);
    const ir::Storage& storage = table_->problem().graph.storage(id);
    const auto& touches = table_->problem().lives[i].touches;
    if (table_->isHostOnly(id) || touches.empty()) continue;
    const bool isRead = storage.role == ir::Role::kInput && touches.front().reads;
    if (isRead) in += copyTime(links.hostToDevice, table_->bytes(id));
    const bool isMade = storage.output && table_->isWritten(id);
    if (isMade) out += copyTime(links.deviceToHost, table_->bytes(id));
  }
  return std::max(in, out);
}

std::vector<int64_t> BoundSolver::choosePeaks() const {
  std::vector<int64_t> order(loads_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int64_t la = loads_[static_cast<size_t>(a)];
    const int64_t lb = loads_[static_cast<size_t>(b)];
    return la != lb ? la > lb : a < b;
  });
  const int64_t apart = static_cast<int64_t>(loads_.size()) / kSeparation;
  std::vector<int64_t> chosen;
  for (const int64_t node : order) {
    if (chosen.size() == kMostPeaks) break;
    const bool isNear = std::any_of(chosen.begin(), chosen.end(), [&](int64_t other) {
      return std::abs(other - node) <= apart && other != node;
    });
    if (!isNear) chosen.push_back(node);
  }
  return chosen;
}

Peak BoundSolver::makePeak(int64_t node) const {
  const auto nodes = static_cast<int64_t>(table_->nodeCount());
  Peak peak{.node = node, .need = static_cast<double>(loads_[static_cast<size_t>(node)])};
  std::vector<int32_t> makers(table_->nodeCount(), -1);
  for (size_t g = 0; g < table_->gaps().size(); ++g) {
    const Gap& gap = table_->gaps()[g];
    if (!gap.live || !(gap.mayHost || gap.mayRecompute)) continue;
    bool isOver = false;
    forEachInside(gap, nodes,
                  [&](int64_t from, int64_t to) { isOver |= from <= node && node < to; });
    if (isOver) addItem(gap, g - table_->gapIndex(gap.storage, 0), peak, makers);
  }
  return peak;
}

void BoundSolver::addItem(const Gap& gap, size_t touch, Peak& peak,
                          std::vector<int32_t>& makers) const {
  const auto nodes = static_cast<int64_t>(table_->nodeCount());
  const auto& touches = table_->problem().lives[gap.storage.index()].touches;
  const ir::Storage& storage = table_->problem().graph.storage(gap.storage);
  const bool isFromLastStep = peak.node < gap.begin;
  PeakItem item{.bytes = static_cast<double>(table_->bytes(gap.storage)), .mayHost = gap.mayHost};
  if (gap.end < nodes) item.read = gap.end;
  if (isFromLastStep) item.read = gap.end - nodes;
  // What the host holds from outside, or for ever, need not be copied there.
  const bool isMadeHere = touches[touch].version > 0;
  item.dirty = storage.persistent ? table_->isWritten(gap.storage)
                                  : isMadeHere || storage.role != ir::Role::kInput;
  for (size_t k = touch + 1; k-- > 0 && item.dirty && isMadeHere && !isFromLastStep;) {
    if (!touches[k].writes) continue;
    item.written = touches[k].position;
    break;
  }
  if (gap.mayRecompute) {
    const auto begin = static_cast<size_t>(table_->chainBegin(gap.storage, touch));
    int32_t& maker = makers[static_cast<size_t>(touches[begin].position)];
    if (maker < 0) {
      maker = static_cast<int32_t>(peak.makerTime.size());
      const auto node = static_cast<size_t>(touches[begin].position);
      peak.makerTime.push_back(static_cast<double>(table_->nodeWork(node)));
    }
    item.maker = maker;
    item.ownRecompute = ownRecomputeTime(gap.storage, begin, touch);
  }
  peak.items.push_back(item);
}

// Further writers of the chain that write nothing else: their recompute serves this item alone.
double BoundSolver::ownRecomputeTime(ir::StorageId storage, size_t begin, size_t touch) const {
  const auto& touches = table_->problem().lives[storage.index()].touches;
  double time = 0;
  for (size_t k = begin + 1; k <= touch; ++k) {
    if (!touches[k].writes) continue;
    const auto node = static_cast<size_t>(touches[k].position);
    int writes = 0;
    for (const ir::Access& access : table_->recomputeAccesses(node)) {
      writes += access.writes() ? 1 : 0;
    }
    if (writes == 1) time += static_cast<double>(table_->nodeWork(node));
  }
  return time;
}

int64_t BoundSolver::bound(int64_t budget) const {
  double best = static_cast<double>(computeTime_);
  for (const Peak& peak : peaks_) {
    best = std::max(best, boundAtPeak(peak, frame_, static_cast<double>(budget)));
  }
  // Rounding must not lift the bound over what is true.
  const auto safe = static_cast<int64_t>(std::floor(best * (1 - 1e-9))) - 1;
  return std::max({computeTime_, hostTime_, linkTime_, boundaryTime_, safe});
}

LowerBound computeLowerBound(const Problem& problem, Bytes budget) {
  const GapTable table(problem);
  const BoundSolver solver(table);
  return {.stepTime = Nanoseconds(solver.bound(budget.value())),
          .smallestBudget = Bytes(solver.smallestBudget()),
          .widestNode = solver.widestNode()};
}

}  // namespace stowage::planner
