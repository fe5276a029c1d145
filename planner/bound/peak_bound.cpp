// SPDX-License-Identifier: Apache-2.0
#include "planner/bound/peak_bound.h"

#include <algorithm>
#include <cmath>

#include "planner/bound/dual_simplex.h"

namespace stowage::planner {

namespace {

constexpr int kMostRounds = 300;
constexpr double kGap = 1e-8;  // relative

// What one choice for all items amounts to. Times in nanoseconds, but `cover` in bytes.
struct Column {
  std::vector<double> out;     // by item: offloaded, bytes
  std::vector<double> before;  // by threshold: time that its copies take there
  std::vector<double> after;
  double cover = 0;
  double outTime = 0;
  double inTime = 0;
  double recomputeTime = 0;
};

// Prices of the rows, nanoseconds of step time per unit.
struct Prices {
  std::vector<double> before;  // by threshold
  std::vector<double> after;
  double recompute = 0;
  double allIn = 0;
  double allOut = 0;
  double cover = 0;
};

class PeakSolver {
 public:
  PeakSolver(const Peak& peak, const PeakFrame& frame, double budget)
      : peak_(peak),
        frame_(frame),
        total_(frame.timeBefore.back()),
        first_(frame.timeBefore[static_cast<size_t>(peak.node)]),
        second_(total_ - first_),
        cover_(peak.need - budget) {
    double most = 0;
    for (const PeakItem& item : peak_.items) most += movable(item) ? item.bytes : 0;
    cover_ = std::min(cover_, most);
  }

  double solve() {
    best_ = total_;
    if (cover_ <= 0) return best_;
    addColumn(cheapest(startPrices()).column);
    for (int round = 0; round < kMostRounds; ++round) {
      const LinearSolution solution = solveLinearProgram(master());
      if (!solution.solved) break;
      const Prices prices = readPrices(solution.prices);
      Choice choice = cheapest(prices);
      best_ = std::max(best_, choice.bound);
      const bool grew = addRows(solution.x);
      if (!grew && solution.value <= best_ * (1 + kGap) + 1) break;
      addColumn(std::move(choice.column));
    }
    return best_;
  }

 private:
  struct Choice {
    Column column;
    double bound = 0;
  };

  static bool movable(const PeakItem& item) { return item.mayHost || item.maker >= 0; }
  double timeUntil(int64_t node) const { return frame_.timeBefore[static_cast<size_t>(node + 1)]; }
  double timeFrom(int64_t node) const {
    return total_ - frame_.timeBefore[static_cast<size_t>(node)];
  }

  // Covers everything at any price.
  Prices startPrices() const {
    return {.before = {}, .after = {}, .recompute = 0, .allIn = 0, .allOut = 0, .cover = 1};
  }

  // --- the master program: columns are T, T1, T2 and a weight for each choice ------------------

  // Order of rows: T1 + T2, recompute, all in, all out, cover, weights, before..., after...
  static constexpr size_t kFixedRows = 7;

  LinearProgram master() const {
    LinearProgram program;
    const size_t count = 3 + columns_.size();
    program.cost.assign(count, 0);
    program.cost[0] = 1;
    const auto addRow = [&](double t, double t1, double t2, double limit, auto ofColumn) {
      std::vector<double> row = {t, t1, t2};
      for (const Column& column : columns_) row.push_back(ofColumn(column));
      program.rows.push_back(std::move(row));
      program.limits.push_back(limit);
    };
    const auto none = [](const Column&) { return 0.0; };
    addRow(1, -1, -1, 0, none);
    addRow(0, 1, 0, first_, none);
    addRow(0, 0, 1, second_, [](const Column& c) { return -c.recomputeTime; });
    addRow(1, 0, 0, 0, [](const Column& c) { return -c.inTime; });
    addRow(1, 0, 0, 0, [](const Column& c) { return -c.outTime; });
    addRow(0, 0, 0, 1, [&](const Column& c) { return c.cover / cover_; });
    addRow(0, 0, 0, -1, [](const Column&) { return -1.0; });
    for (size_t j = 0; j < before_.size(); ++j) {
      addRow(0, 1, 0, timeUntil(before_[j]), [&](const Column& c) { return -c.before[j]; });
    }
    for (size_t j = 0; j < after_.size(); ++j) {
      addRow(0, 0, 1, timeFrom(after_[j]), [&](const Column& c) { return -c.after[j]; });
    }
    return program;
  }

  void addColumn(Column column) {
    for (const int64_t written : before_) column.before.push_back(outSince(column.out, written));
    for (const int64_t read : after_) column.after.push_back(inUntil(column.out, read));
    columns_.push_back(std::move(column));
  }

  double outSince(const std::vector<double>& out, int64_t written) const {
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      if (peak_.items[i].written >= written) sum += out[i];
    }
    return sum * frame_.outPerByte;
  }
  double inUntil(const std::vector<double>& out, int64_t read) const {
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      if (peak_.items[i].read >= 0 && peak_.items[i].read <= read) sum += out[i];
    }
    return sum * frame_.inPerByte;
  }

  Prices readPrices(const std::vector<double>& rows) const {
    Prices prices;
    prices.recompute = rows[2];
    prices.allIn = rows[3];
    prices.allOut = rows[4];
    prices.cover = rows[5] / cover_;
    const auto begin = rows.begin() + kFixedRows;
    prices.before.assign(begin, begin + static_cast<int64_t>(before_.size()));
    prices.after.assign(begin + static_cast<int64_t>(before_.size()), rows.end());
    makeFeasible(prices, rows[0]);
    return prices;
  }

  // Prices must not promise more than a unit of T is worth; rounding may have made them.
  static void makeFeasible(Prices& prices, double both) {
    double first = 0;
    double second = prices.recompute;
    for (const double price : prices.before) first += price;
    for (const double price : prices.after) second += price;
    both = std::max({both, first, second});
    const double whole = both + prices.allIn + prices.allOut;
    if (whole <= 1) return;
    for (double& price : prices.before) price /= whole;
    for (double& price : prices.after) price /= whole;
    prices.recompute /= whole;
    prices.allIn /= whole;
    prices.allOut /= whole;
    prices.cover /= whole;
  }

  // --- the best choice at given prices, item by item --------------------------------------------

  Choice cheapest(const Prices& prices) const {
    Choice choice{.column = {.out = std::vector<double>(peak_.items.size(), 0)}};
    std::vector<double> gain(peak_.makerTime.size(), 0);  // of a recompute over copies
    std::vector<double> copyCost(peak_.items.size(), 0);  // per byte; above the cover's price: none
    for (size_t i = 0; i < peak_.items.size(); ++i) {
      const PeakItem& item = peak_.items[i];
      copyCost[i] = item.mayHost ? costOfCopy(item, prices) : prices.cover;
      if (item.maker < 0) continue;
      const double copied = std::min(prices.cover, copyCost[i]) * item.bytes;
      gain[static_cast<size_t>(item.maker)] +=
          std::max(0.0, copied - prices.recompute * item.ownRecompute);
    }
    double value = 0;
    std::vector<bool> isMade(peak_.makerTime.size(), false);
    for (size_t q = 0; q < isMade.size(); ++q) {
      isMade[q] = gain[q] > prices.recompute * peak_.makerTime[q];
      if (!isMade[q]) continue;
      value += prices.recompute * peak_.makerTime[q];
      choice.column.recomputeTime += peak_.makerTime[q];
    }
    for (size_t i = 0; i < peak_.items.size(); ++i) {
      value += choose(i, prices, copyCost[i], isMade, choice.column);
    }
    choice.bound = value + constant(prices);
    return choice;
  }

  // Adds item i to the column; its part of the value.
  double choose(size_t i, const Prices& prices, double copyCost, const std::vector<bool>& isMade,
                Column& column) const {
    const PeakItem& item = peak_.items[i];
    const double copied = std::min(prices.cover, copyCost) * item.bytes;
    const double recompute = prices.recompute * item.ownRecompute;
    if (item.maker >= 0 && isMade[static_cast<size_t>(item.maker)] && copied > recompute) {
      column.cover += item.bytes;
      column.recomputeTime += item.ownRecompute;
      return recompute - prices.cover * item.bytes;
    }
    if (!item.mayHost || copyCost >= prices.cover) return 0;
    column.out[i] = item.bytes;
    column.cover += item.bytes;
    column.inTime += item.bytes * frame_.inPerByte;
    if (item.dirty) column.outTime += item.bytes * frame_.outPerByte;
    return (copyCost - prices.cover) * item.bytes;
  }

  double costOfCopy(const PeakItem& item, const Prices& prices) const {
    double out = item.dirty ? prices.allOut : 0;
    for (size_t j = 0; j < prices.before.size(); ++j) {
      if (item.written >= before_[j]) out += prices.before[j];
    }
    double in = prices.allIn;
    for (size_t j = 0; j < prices.after.size(); ++j) {
      if (item.read >= 0 && item.read <= after_[j]) in += prices.after[j];
    }
    return out * frame_.outPerByte + in * frame_.inPerByte;
  }

  // What the rows' limits are worth: a valid bound with the choice's value. T1 and T2 get the rest
  // of their unit at their own lower limits.
  double constant(const Prices& prices) const {
    double first = 0;
    double second = prices.recompute;
    double sum = prices.cover * cover_ + prices.recompute * second_;
    for (size_t j = 0; j < prices.before.size(); ++j) {
      first += prices.before[j];
      sum += prices.before[j] * timeUntil(before_[j]);
    }
    for (size_t j = 0; j < prices.after.size(); ++j) {
      second += prices.after[j];
      sum += prices.after[j] * timeFrom(after_[j]);
    }
    const double both = 1 - prices.allIn - prices.allOut;
    return sum + std::max(0.0, both - first) * first_ + std::max(0.0, both - second) * second_;
  }

  // --- rows that the mixture of choices breaks ---------------------------------------------------

  bool addRows(const std::vector<double>& x) {
    std::vector<double> out(peak_.items.size(), 0);
    for (size_t k = 0; k < columns_.size(); ++k) {
      if (x[3 + k] <= 0) continue;
      for (size_t i = 0; i < out.size(); ++i) out[i] += x[3 + k] * columns_[k].out[i];
    }
    const bool before = addRow(out, /*isBefore=*/true, x[1]);
    return addRow(out, /*isBefore=*/false, x[2]) || before;
  }

  // Walks the thresholds from the peak outwards, so that the bytes of each are those of the one
  // before and its own.
  bool addRow(const std::vector<double>& out, bool isBefore, double time) {
    std::vector<std::pair<int64_t, double>> byPosition;
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t position = isBefore ? peak_.items[i].written : peak_.items[i].read;
      if (position >= 0 && out[i] > 0) byPosition.push_back({position, out[i]});
    }
    std::sort(byPosition.begin(), byPosition.end());
    if (isBefore) std::reverse(byPosition.begin(), byPosition.end());
    double sum = 0;
    double worst = time * (1 + kGap) + 1;
    int64_t found = -1;
    for (const auto& [position, bytes] : byPosition) {
      sum += bytes * (isBefore ? frame_.outPerByte : frame_.inPerByte);
      const double needed = sum + (isBefore ? timeUntil(position) : timeFrom(position));
      if (needed <= worst) continue;
      worst = needed;
      found = position;
    }
    std::vector<int64_t>& rows = isBefore ? before_ : after_;
    if (found < 0 || std::find(rows.begin(), rows.end(), found) != rows.end()) return false;
    rows.push_back(found);
    for (Column& column : columns_) {
      (isBefore ? column.before : column.after)
          .push_back(isBefore ? outSince(column.out, found) : inUntil(column.out, found));
    }
    return true;
  }

  const Peak& peak_;
  const PeakFrame& frame_;
  double total_;
  double first_;   // node times before the peak
  double second_;  // from the peak on
  double cover_;   // bytes that must not be there
  double best_ = 0;
  std::vector<Column> columns_;
  std::vector<int64_t> before_, after_;  // thresholds of the rows so far
};

}  // namespace

double boundAtPeak(const Peak& peak, const PeakFrame& frame, double budget) {
  return PeakSolver(peak, frame, budget).solve();
}

}  // namespace stowage::planner
