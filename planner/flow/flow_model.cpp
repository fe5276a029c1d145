// SPDX-License-Identifier: Apache-2.0
#include "planner/flow/flow_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "planner/flow/flow_simplex.h"
#include "planner/flow/gap_copies.h"
#include "planner/flow/round_flow.h"

namespace stowage::planner {

namespace {

using ir::GapAction;

constexpr int32_t kSlots = 96;
constexpr int64_t kLongSlots = 2;      // a copy longer than so many equal slots is not a point
constexpr int64_t kSmallPart = 65536;  // of all bytes together: smaller storages stay
constexpr int64_t kMostSteps = 6000;   // basis changes
constexpr int kMostExclusions = 8;     // times that rows are added
constexpr double kSmallest = 1e-6;     // what is less than that is nothing
constexpr int kMostDives = 8;          // large storages that are decided one by one
constexpr double kLargePart = 400;     // of the budget: how much of a storage is large
constexpr double kUnits = 32;          // bytes are counted in such parts of the budget
constexpr double kTimeUnits = 256;     // times in such parts of the step
constexpr double kMoveCost = 1e-3;     // of a copy's time: what moves less is better
constexpr double kExcessCost = 1e4;    // of a unit that does not fit

int64_t totalTime(const GapTable& table) {
  int64_t time = 0;
  for (size_t i = 0; i < table.nodeCount(); ++i) time += table.nodeTime(i);
  return time;
}

class FlowModel {
 public:
  FlowModel(const GapTable& table, const RecomputeCosts& costs, const FlowChoices& choices,
            const FlowQuestion& question)
      : table_(table),
        costs_(costs),
        choices_(choices),
        question_(question),
        slots_(cutStep(table, question.loads, kSlots)),
        copies_(table, kLongSlots * totalTime(table) / kSlots),
        nodes_(static_cast<int64_t>(table.nodeCount())),
        computeTime_(totalTime(table)) {
    const ir::LinkModel& links = table.problem().costs.links;
    byteUnit_ = static_cast<double>(std::max<int64_t>(question.budget, 1)) / kUnits;
    timeUnit_ = static_cast<double>(std::max<int64_t>(computeTime_, 1)) / kTimeUnits;
    const auto rate = [&](const ir::LinkRate& link) {
      return static_cast<double>(link.bandwidth.value()) / 1e9 * timeUnit_ / byteUnit_;
    };
    outRate_ = rate(links.deviceToHost);
    inRate_ = rate(links.hostToDevice);
    for (const int64_t load : question.loads) allBytes_ = std::max(allBytes_, load);
    for (const int64_t node : slots_.widest) byteRows_.push_back({node, slots_.slotAt(node)});
    for (const int64_t node : question.watched) byteRows_.push_back({node, slots_.slotAt(node)});
    makeRows();
    makeFlows();
    addFixed();
    addClasses();
  }

  FlowAnswer solve() {
    FlowSimplex simplex(std::move(rows_), std::move(columns_));
    bool isSolved = simplex.solve(kMostSteps);
    for (int i = 0; isSolved && i < kMostExclusions && excludeBoth(simplex); ++i) {
      isSolved = simplex.solve(kMostSteps);
    }
    FlowSimplex other({}, {});
    for (int i = 0; question_.settles && isSolved && i < kMostDives; ++i) {
      if (!settleOne(simplex, other)) break;
    }
    const std::vector<double> x = simplex.values();
    double waits = 0;
    double recomputes = 0;
    for (const size_t column : stalls_) waits += x[column];
    for (const GapClass& one : classes_) {
      if (one.host >= 0) waits += x[static_cast<size_t>(one.host)] * timeUnits(one.uncovered);
      if (one.recompute < 0) continue;
      const int64_t time = costs_[one.members.front()]->time.value();
      recomputes += x[static_cast<size_t>(one.recompute)] * timeUnits(time);
    }
    const Actions start = question_.fixed != nullptr
                              ? *question_.fixed
                              : Actions(table_.gaps().size(), GapAction::kKeep);
    return {.actions = roundFlow(table_, classes_, x, start),
            .time = computeTime_ + static_cast<int64_t>((waits + recomputes) * timeUnit_),
            .waits = static_cast<int64_t>(waits * timeUnit_),
            .slotTime = *std::max_element(slots_.time.begin(), slots_.time.end()),
            .slots = std::move(slots_),
            .fits = isSolved && x[excess_] <= kSmallest};
  }

 private:
  // Rows: in-link, out-link, due, written, leaving, one of each kind per slot; then bytes, one per
  // node at which they must fit.
  enum Row : int32_t { kIn, kOut, kDue, kWritten, kLeaving, kRowKinds };
  int32_t row(Row kind, int32_t slot) const { return kind * slots_.count() + slot; }
  struct ByteRow {
    int64_t node = 0;
    int32_t slot = 0;
  };
  int32_t byteRow(size_t index) const {
    return kRowKinds * slots_.count() + static_cast<int32_t>(index);
  }
  double units(int64_t bytes) const { return static_cast<double>(bytes) / byteUnit_; }
  double timeUnits(int64_t time) const { return static_cast<double>(time) / timeUnit_; }

  void makeRows() {
    rows_.resize(static_cast<size_t>(byteRow(byteRows_.size())));
    for (size_t i = 0; i < byteRows_.size(); ++i) {
      const int64_t load = question_.loads[static_cast<size_t>(byteRows_[i].node)];
      rows_[static_cast<size_t>(byteRow(i))].limit = units(question_.budget - load);
    }
    for (int32_t k = 0; k < slots_.count(); ++k) {
      const auto at = static_cast<size_t>(k);
      rows_[static_cast<size_t>(row(kIn, k))].limit = timeUnits(slots_.time[at]) * inRate_;
      rows_[static_cast<size_t>(row(kOut, k))].limit = timeUnits(slots_.time[at]) * outRate_;
      rows_[static_cast<size_t>(row(kDue, k))].isEquality = true;
      rows_[static_cast<size_t>(row(kWritten, k))].isEquality = true;
    }
    takeLostTime(kIn, question_.lost.in, inRate_);
    takeLostTime(kOut, question_.lost.out, outRate_);
  }

  // From the slot of the node backwards, as far as the link has time there.
  void takeLostTime(Row link, const std::vector<int64_t>& lost, double rate) {
    for (size_t node = 0; node < lost.size(); ++node) {
      double left = timeUnits(lost[node]) * rate;
      int32_t slot = (slots_.slotOf[node] + slots_.count() - 1) % slots_.count();
      for (int32_t i = 0; i < slots_.count() && left > 0; ++i) {
        double& limit = rows_[static_cast<size_t>(row(link, slot))].limit;
        const double taken = std::min(left, std::max(limit, 0.0));
        limit -= taken;
        left -= taken;
        slot = (slot + slots_.count() - 1) % slots_.count();
      }
    }
  }

  FlowColumn& addColumn(double cost, double most) {
    columns_.push_back({.cost = cost, .most = most});
    return columns_.back();
  }
  static void add(FlowColumn& column, int32_t row, double cell) {
    for (auto& [at, sum] : column.cells) {
      if (at == row) {
        sum += cell;
        return;
      }
    }
    column.cells.push_back({row, cell});
  }

  // What flows between the slots: stalls, bytes that come in, are back early, go out, are on the
  // device and not on the host yet, and of these what nobody needs any more.
  void makeFlows() {
    constexpr double kNoLimit = std::numeric_limits<double>::infinity();
    const int32_t count = slots_.count();
    for (int32_t k = 0; k < count; ++k) {
      const int32_t next = (k + 1) % count;
      stalls_.push_back(columns_.size());
      FlowColumn& stall = addColumn(1, kNoLimit);
      add(stall, row(kIn, k), -inRate_);
      add(stall, row(kOut, k), -outRate_);
      FlowColumn& in = addColumn(0, kNoLimit);
      add(in, row(kIn, k), 1);
      addBytes(in, k, 1);
      add(in, row(kDue, next), -1);
      FlowColumn& early = addColumn(0, kNoLimit);
      addBytes(early, k, 1);
      add(early, row(kDue, k), 1);
      add(early, row(kDue, next), -1);
      FlowColumn& out = addColumn(0, kNoLimit);
      add(out, row(kOut, k), 1);
      add(out, row(kWritten, k), 1);
      FlowColumn& written = addColumn(0, kNoLimit);
      add(written, row(kWritten, k), 1);
      add(written, row(kWritten, next), -1);
      add(written, row(kLeaving, k), 1);
      FlowColumn& leaving = addColumn(0, kNoLimit);
      add(leaving, row(kLeaving, k), -1);
      addBytes(leaving, k, 1);
    }
    excess_ = columns_.size();
    FlowColumn& excess = addColumn(kExcessCost, kNoLimit);
    for (int32_t k = 0; k < count; ++k) addBytes(excess, k, -1);
  }

  void addBytes(FlowColumn& column, int32_t slot, double cell) const {
    for (size_t i = 0; i < byteRows_.size(); ++i) {
      if (byteRows_[i].slot == slot) add(column, byteRow(i), cell);
    }
  }
  // What a gap frees up to `end`.
  void freeBytes(FlowColumn& column, const Gap& gap, int64_t end, double bytes) const {
    for (size_t i = 0; i < byteRows_.size(); ++i) {
      if (coversNode(gap, end, byteRows_[i].node)) add(column, byteRow(i), -bytes);
    }
  }

  bool coversNode(const Gap& gap, int64_t end, int64_t node) const {
    return (gap.begin < node && node < end) || (gap.begin < node + nodes_ && node + nodes_ < end);
  }
  bool covers(const Gap& gap, int64_t end, int32_t slot) const {
    return coversNode(gap, end, slots_.widest[static_cast<size_t>(slot)]);
  }

  // The slot at whose begin the bytes are due: the next one if the slot's widest node comes before.
  int32_t dueSlot(const Gap& gap, int64_t back) const {
    const int32_t slot = slots_.slotAt(back);
    return covers(gap, back, slot) ? (slot + 1) % slots_.count() : slot;
  }

  // The cells of one gap that goes to the host: `visit(row, cell)`.
  template <typename Visitor>
  void visitHost(size_t g, bool isOut, Visitor visit) const {
    const Gap& gap = table_.gaps()[g];
    const double bytes = units(table_.bytes(gap.storage));
    const int64_t back = copies_.backAt(g);
    visit(row(kDue, dueSlot(gap, back)), bytes);
    if (!isOut) return;
    // Until the gap frees them the loads have these bytes.
    int32_t slot = slots_.slotAt(copies_.writtenAt(g));
    visit(row(kWritten, slot), -bytes);
    for (int32_t i = 0; i < slots_.count() && !covers(gap, back, slot); ++i) {
      visit(row(kLeaving, slot), -bytes);
      slot = (slot + 1) % slots_.count();
    }
  }

  // Copies that are made whatever is chosen; their bytes are in the loads already.
  void addFixed() {
    if (question_.fixed == nullptr) return;
    for (size_t g = 0; g < question_.fixed->size(); ++g) {
      if ((*question_.fixed)[g] != GapAction::kHost) continue;
      visitHost(g, copies_.needsOut(g, question_.fixed),
                [&](int32_t at, double cell) { rows_[static_cast<size_t>(at)].limit -= cell; });
    }
  }

  void addClasses() {
    using Key = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, bool, int64_t, int64_t,
                           bool, int64_t, int64_t, std::vector<bool>>;
    std::map<Key, size_t> known;
    for (size_t g = 0; g < table_.gaps().size(); ++g) {
      const Gap& gap = table_.gaps()[g];
      const int64_t bytes = table_.bytes(gap.storage);
      const bool mayRecompute = choices_.mayRecompute[g] && costs_[g].has_value();
      if (!choices_.mayHost[g] && !mayRecompute) continue;
      if (bytes <= allBytes_ / kSmallPart) continue;
      int32_t covered = 0;
      int32_t firstCovered = -1;
      const int64_t back = choices_.mayHost[g] ? copies_.backAt(g) : gap.end;
      for (int32_t k = 0; k < slots_.count(); ++k) {
        if (!covers(gap, gap.end, k)) continue;
        const bool isFirst = !covers(gap, gap.end, (k + slots_.count() - 1) % slots_.count());
        if (isFirst || firstCovered < 0) firstCovered = k;
        ++covered;
      }
      std::vector<bool> coversWatched;
      for (const int64_t node : question_.watched) {
        coversWatched.push_back(coversNode(gap, gap.end, node));
        covered += coversWatched.back() ? 1 : 0;
      }
      if (covered == 0) continue;
      const bool isOut = choices_.mayHost[g] && copies_.needsOut(g, question_.before);
      const int64_t uncovered = choices_.mayHost[g] ? copies_.uncoveredTime(g, isOut) : 0;
      const Key key{firstCovered,
                    covered,
                    slots_.slotAt(gap.end),
                    dueSlot(gap, back),
                    isOut ? slots_.slotAt(copies_.writtenAt(g)) : -1,
                    choices_.mayHost[g],
                    uncovered,
                    bytes,
                    mayRecompute,
                    mayRecompute ? costs_[g]->time.value() : 0,
                    mayRecompute ? costs_[g]->bytes.value() : 0,
                    std::move(coversWatched)};
      const auto [at, isNew] = known.try_emplace(key, classes_.size());
      if (isNew) classes_.emplace_back();
      classes_[at->second].members.push_back(g);
    }
    for (GapClass& one : classes_) addColumns(one);
  }

  void addColumns(GapClass& one) {
    const size_t g = one.members.front();
    const Gap& gap = table_.gaps()[g];
    const auto count = static_cast<double>(one.members.size());
    const double bytes = units(table_.bytes(gap.storage));
    if (choices_.mayHost[g]) {
      const bool isOut = copies_.needsOut(g, question_.before);
      const int64_t back = copies_.backAt(g);
      const double copies = bytes / inRate_ + (isOut ? bytes / outRate_ : 0);
      one.host = static_cast<int32_t>(columns_.size());
      one.uncovered = copies_.uncoveredTime(g, isOut);
      // The waits of several gaps may run beside each other.
      if (!question_.settles) one.uncovered /= 2;
      const double waits = timeUnits(one.uncovered);
      FlowColumn& column = addColumn(kMoveCost * copies + waits, count);
      if (one.uncovered > 0) {
        const int32_t at = slots_.slotAt(gap.end);
        add(column, row(kIn, at), -inRate_ * waits);
        add(column, row(kOut, at), -outRate_ * waits);
      }
      visitHost(g, isOut, [&](int32_t at, double cell) { add(column, at, cell); });
      freeBytes(column, gap, back, bytes);
    }
    if (!choices_.mayRecompute[g] || !costs_[g]) return;
    const double time = timeUnits(costs_[g]->time.value());
    one.recompute = static_cast<int32_t>(columns_.size());
    FlowColumn& column = addColumn(time, count);
    const int32_t at = slots_.slotAt(gap.end);
    add(column, row(kIn, at), -inRate_ * time);
    add(column, row(kOut, at), -outRate_ * time);
    freeBytes(column, gap, gap.end, units(costs_[g]->bytes.value()));
  }

  // A gap is either copied or recomputed. Few break that, so their rows are added when they do.
  bool excludeBoth(FlowSimplex& simplex) {
    const std::vector<double> x = simplex.values();
    bool isAny = false;
    for (GapClass& one : classes_) {
      if (one.host < 0 || one.recompute < 0) continue;
      const auto most = static_cast<double>(one.members.size());
      if (x[static_cast<size_t>(one.host)] + x[static_cast<size_t>(one.recompute)] <=
          most + kSmallest)
        continue;
      const std::pair<int32_t, double> cells[] = {{one.host, 1.0}, {one.recompute, 1.0}};
      simplex.addRow(most, cells);
      isAny = true;
    }
    return isAny;
  }

  // Half of a large storage cannot travel. The one with the most bytes at stake is decided first,
  // whichever way costs less when all others adapt to it. False if none is left. `other` is room
  // for the other way.
  bool settleOne(FlowSimplex& simplex, FlowSimplex& other) const {
    const std::vector<double> x = simplex.values();
    double most = kUnits / kLargePart;
    int32_t column = -1;
    for (const GapClass& one : classes_) {
      const double bytes = units(table_.bytes(table_.gaps()[one.members.front()].storage));
      for (const int32_t own : {one.host, one.recompute}) {
        if (own < 0) continue;
        const double value = x[static_cast<size_t>(own)];
        const double stake = std::abs(value - std::round(value)) * bytes;
        if (stake <= most) continue;
        most = stake;
        column = own;
      }
    }
    if (column < 0) return false;
    const double whole = std::floor(x[static_cast<size_t>(column)]);
    other = simplex;
    other.addRow(-whole - 1, {{column, -1.0}});
    const bool isUp = other.solve(kMostSteps);
    simplex.addRow(whole, {{column, 1.0}});
    const bool isDown = simplex.solve(kMostSteps);
    if (isUp && (!isDown || other.cost() < simplex.cost())) std::swap(simplex, other);
    return isUp || isDown;
  }

  const GapTable& table_;
  const RecomputeCosts& costs_;
  const FlowChoices& choices_;
  const FlowQuestion& question_;
  StepSlots slots_;
  GapCopies copies_;
  int64_t nodes_;
  double byteUnit_ = 1;
  double timeUnit_ = 1;
  double outRate_ = 1;  // units of bytes in a unit of time
  double inRate_ = 1;
  std::vector<ByteRow> byteRows_;  // the fullest node of each slot, then the watched ones
  std::vector<FlowRow> rows_;
  std::vector<FlowColumn> columns_;
  std::vector<GapClass> classes_;
  std::vector<size_t> stalls_;  // columns
  size_t excess_ = 0;           // column
  int64_t allBytes_ = 0;        // at the widest node
  int64_t computeTime_ = 0;     // nanoseconds
};

}  // namespace

FlowAnswer chooseByFlow(const GapTable& table, const RecomputeCosts& costs,
                        const FlowChoices& choices, const FlowQuestion& question) {
  return FlowModel(table, costs, choices, question).solve();
}

}  // namespace stowage::planner
