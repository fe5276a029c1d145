// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reference_bound.h"

#include <algorithm>
#include <map>

#include "ir/graph/op_table.h"
#include "planner/bound/dual_simplex.h"

namespace stowage::tests {

namespace {

using planner::Peak;
using planner::PeakFrame;
using planner::PeakItem;

bool isRecomputable(const ir::Graph& graph, size_t node) {
  const ir::OpInfo& info = ir::lookUpOp(graph.nodes()[node].op);
  if (!info.recomputable || info.repeatable != ir::Repeatable::kYes) return false;
  for (const ir::Access& access : graph.accesses(ir::NodeId(node))) {
    if (access.writes() && graph.storage(access.storage).persistent) return false;
  }
  return true;
}

class Deriver {
 public:
  Deriver(const planner::Problem& problem, Formula formula)
      : problem_(problem), graph_(problem.graph), formula_(formula) {
    result_.frame.timeBefore.push_back(0);
    for (size_t i = 0; i < problem.costs.nodes.size(); ++i) {
      result_.frame.timeBefore.push_back(result_.frame.timeBefore.back() + timeOf(i));
    }
    const ir::LinkModel& links = problem.costs.links;
    result_.frame.outPerByte = 1e9 / static_cast<double>(links.deviceToHost.bandwidth.value());
    result_.frame.inPerByte = 1e9 / static_cast<double>(links.hostToDevice.bandwidth.value());
  }

  ReferencePeaks derive() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) addPeak(static_cast<int64_t>(i));
    return std::move(result_);
  }

 private:
  bool isOld() const { return formula_ == Formula::kAsFirstWritten; }

  void addPeak(int64_t node) {
    peak_ = {.node = node, .need = workingSet(static_cast<size_t>(node))};
    makers_.clear();
    for (size_t i = 0; i < graph_.storages().size(); ++i) addStorage(ir::StorageId(i));
    result_.peaks.push_back(std::move(peak_));
  }

  double workingSet(size_t node) const {
    double bytes = static_cast<double>(problem_.costs.nodes[node].temporary.value());
    for (const ir::Access& access : graph_.accesses(ir::NodeId(node))) {
      bytes += static_cast<double>(graph_.storage(access.storage).bytes.value());
    }
    const ir::Node& launched = graph_.nodes()[node];
    const int operand = ir::lookUpOp(launched.op).inPlaceOperand;
    if (operand < 0 || isOld()) return bytes;
    const auto* argument = std::get_if<ir::ValueArg>(&launched.args[static_cast<size_t>(operand)]);
    const ir::StorageId from = graph_.value(argument->value).storage;
    const ir::StorageId to = graph_.value(launched.results[0]).storage;
    const Bytes shared = graph_.storage(from).bytes;
    if (from != to && shared == graph_.storage(to).bytes) {
      bytes -= static_cast<double>(shared.value());
    }
    return bytes;
  }

  // The gap of the storage over the peak, if there is one.
  void addStorage(ir::StorageId id) {
    const auto& touches = problem_.lives[id.index()].touches;
    const ir::Storage& storage = graph_.storage(id);
    if (touches.empty()) return;
    const auto isAt = [&](const ir::Touch& touch) { return touch.position == peak_.node; };
    if (std::any_of(touches.begin(), touches.end(), isAt)) return;
    const auto next = std::find_if(touches.begin(), touches.end(), [&](const ir::Touch& touch) {
      return touch.position > peak_.node;
    });
    const bool isFirst = next == touches.begin();
    const bool isLast = next == touches.end();
    if (!storage.persistent && (isFirst || isLast)) return;
    const ir::Touch& before = isFirst ? touches.back() : *std::prev(next);
    const ir::Touch& after = isLast ? touches.front() : *next;
    if (after.whole) return;
    PeakItem item{.bytes = static_cast<double>(storage.bytes.value()), .mayHost = true};
    if (!isLast) item.read = after.position;
    item.dirty = isOld() || (storage.persistent ? graph_.lastVersion(id) > 0 : before.version > 0);
    if (!isFirst) item.written = lastWrite(touches, before.position);
    if (!item.dirty) item.written = -1;
    if (isOld() && !isFirst) item.written = before.position;
    addMaker(id, touches, before.position, item);
    peak_.need += item.bytes;
    peak_.items.push_back(item);
  }

  static int64_t lastWrite(const std::vector<ir::Touch>& touches, int64_t until) {
    int64_t found = -1;
    for (const ir::Touch& touch : touches) {
      if (touch.writes && touch.position <= until) found = touch.position;
    }
    return found;
  }

  void addMaker(ir::StorageId id, const std::vector<ir::Touch>& touches, int64_t until,
                PeakItem& item) {
    if (graph_.storage(id).persistent || graph_.storage(id).role == ir::Role::kInput) return;
    double own = 0;
    for (const ir::Touch& touch : touches) {
      if (!touch.writes || touch.position > until) continue;
      const auto node = static_cast<size_t>(touch.position);
      if (!isRecomputable(graph_, node)) return;
      if (!touch.whole) own += timeOf(node);
    }
    const int64_t maker = touches.front().position;
    const int64_t key = isOld() ? -1 - static_cast<int64_t>(id.index()) : maker;
    const auto [at, isNew] = makers_.try_emplace(key, static_cast<int32_t>(makers_.size()));
    if (isNew) peak_.makerTime.push_back(timeOf(static_cast<size_t>(maker)));
    item.maker = at->second;
    item.ownRecompute = own;
  }

  double timeOf(size_t node) const {
    return static_cast<double>(problem_.costs.nodes[node].work.value());
  }

  const planner::Problem& problem_;
  const ir::Graph& graph_;
  Formula formula_;
  ReferencePeaks result_;
  Peak peak_;
  std::map<int64_t, int32_t> makers_;
};

// Columns: T, T1, T2, then e and z of each item, then y of each maker.
class Program {
 public:
  Program(const Peak& peak, const PeakFrame& frame, double budget)
      : peak_(peak), frame_(frame), columns_(3 + 2 * peak.items.size() + peak.makerTime.size()) {
    program_.cost.assign(columns_, 0);
    program_.cost[0] = 1;
    addTimes();
    addCover(budget);
    for (size_t i = 0; i < peak.items.size(); ++i) addItem(i);
  }
  const planner::LinearProgram& program() const { return program_; }

 private:
  using Row = std::vector<double>;
  Row row() const { return Row(columns_, 0); }
  void add(Row row, double limit) {
    program_.rows.push_back(std::move(row));
    program_.limits.push_back(limit);
  }
  double total() const { return frame_.timeBefore.back(); }
  double until(int64_t node) const { return frame_.timeBefore[static_cast<size_t>(node) + 1]; }
  double from(int64_t node) const { return total() - frame_.timeBefore[static_cast<size_t>(node)]; }
  size_t e(size_t i) const { return 3 + i; }
  size_t z(size_t i) const { return 3 + peak_.items.size() + i; }
  size_t y(size_t q) const { return 3 + 2 * peak_.items.size() + q; }

  void addTimes() {
    Row both = row();
    both[0] = 1;
    both[1] = both[2] = -1;
    add(both, 0);
    Row first = row();
    first[1] = 1;
    add(first, peak_.node > 0 ? until(peak_.node - 1) : 0);
    Row second = row();
    second[2] = 1;
    for (size_t q = 0; q < peak_.makerTime.size(); ++q) second[y(q)] = -peak_.makerTime[q];
    for (size_t i = 0; i < peak_.items.size(); ++i) {
      if (peak_.items[i].ownRecompute > 0) {
        second[z(i)] = -peak_.items[i].ownRecompute / peak_.items[i].bytes;
      }
    }
    add(second, from(peak_.node));
    Row in = row();
    Row out = row();
    in[0] = out[0] = 1;
    for (size_t i = 0; i < peak_.items.size(); ++i) {
      in[e(i)] = -frame_.inPerByte;
      if (peak_.items[i].dirty) out[e(i)] = -frame_.outPerByte;
    }
    add(in, 0);
    add(out, 0);
  }

  // No more than all that can go.
  void addCover(double budget) {
    Row cover = row();
    double most = 0;
    for (size_t i = 0; i < peak_.items.size(); ++i) {
      cover[e(i)] = cover[z(i)] = 1;
      most += peak_.items[i].bytes;
    }
    add(cover, std::min(most, peak_.need - budget));
  }

  void addItem(size_t i) {
    const PeakItem& item = peak_.items[i];
    Row most = row();
    most[e(i)] = most[z(i)] = -1;
    add(most, -item.bytes);
    Row made = row();
    made[z(i)] = -1 / item.bytes;
    if (item.maker >= 0) made[y(static_cast<size_t>(item.maker))] = 1;
    add(made, 0);
    if (item.written >= 0) {
      Row before = row();
      before[1] = 1;
      for (size_t j = 0; j < peak_.items.size(); ++j) {
        if (peak_.items[j].written >= item.written) before[e(j)] = -frame_.outPerByte;
      }
      add(before, until(item.written));
    }
    if (item.read < 0) return;
    Row after = row();
    after[2] = 1;
    for (size_t j = 0; j < peak_.items.size(); ++j) {
      const int64_t read = peak_.items[j].read;
      if (read >= 0 && read <= item.read) after[e(j)] = -frame_.inPerByte;
    }
    add(after, from(item.read));
  }

  const Peak& peak_;
  const PeakFrame& frame_;
  size_t columns_;
  planner::LinearProgram program_;
};

}  // namespace

ReferencePeaks derivePeaks(const planner::Problem& problem, Formula formula) {
  return Deriver(problem, formula).derive();
}

double solvePeakProgram(const Peak& peak, const PeakFrame& frame, double budget) {
  const double total = frame.timeBefore.back();
  if (peak.need <= budget) return total;
  const planner::LinearSolution solution =
      planner::solveLinearProgram(Program(peak, frame, budget).program());
  return solution.solved ? std::max(total, solution.value) : -1;
}

double referenceBound(const planner::Problem& problem, int64_t budget, Formula formula) {
  const ReferencePeaks peaks = derivePeaks(problem, formula);
  auto best = static_cast<double>(problem.costs.totalTime().value());
  for (const Peak& peak : peaks.peaks) {
    best = std::max(best, solvePeakProgram(peak, peaks.frame, static_cast<double>(budget)));
  }
  return best;
}

}  // namespace stowage::tests
