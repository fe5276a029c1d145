// SPDX-License-Identifier: Apache-2.0
#include "planner/flow/flow_simplex.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stowage::planner {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPrimal = 1e-7;  // a variable may be beyond its limits by that much
constexpr double kPivot = 1e-7;   // what is smaller in a row is none of its columns
constexpr double kSameRatio = 1e-9;
constexpr double kLeastWeight = 1e-4;
constexpr int64_t kRefresh = 64;  // steps between two computations of values anew
constexpr size_t kSpareRows = 64;

// Nearly all of the time is spent in these two. Element by element, so wide registers give the same
// bits. Sanitizers are not there yet when the loader chooses among clones.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define STOWAGE_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define STOWAGE_WIDE
#endif

STOWAGE_WIDE void addScaled(double* __restrict sum, const double* __restrict own, double scale,
                            size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += scale * own[i];
}

/// `sum` += scale * own, and then `own` -= scale * ratios.
STOWAGE_WIDE void addScaledAndChange(double* __restrict sum, double* __restrict own, double scale,
                                     const double* __restrict ratios, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    sum[i] += scale * own[i];
    own[i] -= ratios[i] * scale;
  }
}

}  // namespace

FlowSimplex::FlowSimplex(std::vector<FlowRow> rows, std::vector<FlowColumn> columns)
    : rows_(std::move(rows)), columns_(std::move(columns)) {
  const size_t rowCount = rows_.size();
  widen(rowCount);
  rowOf_.assign(columns_.size(), -1);
  for (size_t i = 0; i < rowCount; ++i) {
    inverseColumn(i)[i] = 1;
    basic_.push_back(slack(i));
    rowOf_.push_back(static_cast<int32_t>(i));
    value_.push_back(rows_[i].limit);
  }
  weight_.assign(rowCount, 1);
  atMost_.assign(rowOf_.size(), false);
  cellsOf_.resize(rowCount);
  for (size_t j = 0; j < columns_.size(); ++j) {
    most_.push_back(columns_[j].most);
    reduced_.push_back(columns_[j].cost);
    for (const auto& [row, cell] : columns_[j].cells) {
      cellsOf_[static_cast<size_t>(row)].push_back({static_cast<int32_t>(j), cell});
    }
  }
  for (const FlowRow& row : rows_) most_.push_back(row.isEquality ? 0 : kInfinity);
  reduced_.resize(rowOf_.size(), 0);
  slope_.assign(rowOf_.size(), 0);
}

// Hundreds of rows may be added one by one, so there is room for a part of those there are.
void FlowSimplex::widen(size_t rows) {
  const size_t stride = rows + std::max(kSpareRows, rows / 4);
  std::vector<double> wider(stride * stride, 0);
  for (size_t k = 0; k < stride_; ++k) {
    std::copy_n(inverseColumn(k), stride_, wider.begin() + static_cast<int64_t>(k * stride));
  }
  inverse_ = std::move(wider);
  stride_ = stride;
}

// Variables of later rows come last, so nothing that is numbered moves.
void FlowSimplex::addRow(double limit, llvm::ArrayRef<std::pair<int32_t, double>> cells) {
  const size_t row = rowCount();
  double sum = 0;
  if (row == stride_) widen(row + 1);
  inverseColumn(row)[row] = 1;
  for (const auto& [column, cell] : cells) {
    const auto variable = static_cast<size_t>(column);
    columns_[variable].cells.push_back({static_cast<int32_t>(row), cell});
    const int32_t at = rowOf_[variable];
    if (at < 0) {
      sum += atMost_[variable] ? cell * columns_[variable].most : 0;
      continue;
    }
    sum += cell * value_[static_cast<size_t>(at)];
    for (size_t k = 0; k < row; ++k) {
      double* own = inverseColumn(k);
      own[row] -= cell * own[at];
    }
  }
  double weight = 0;
  for (size_t k = 0; k <= row; ++k) weight += inverseColumn(k)[row] * inverseColumn(k)[row];
  rows_.push_back({.limit = limit});
  cellsOf_.emplace_back(cells.begin(), cells.end());
  basic_.push_back(slack(row));
  rowOf_.push_back(static_cast<int32_t>(row));
  value_.push_back(limit - sum);
  weight_.push_back(weight);
  most_.push_back(kInfinity);
  atMost_.push_back(false);
  reduced_.push_back(0);
  slope_.push_back(0);
}

bool FlowSimplex::solve(int64_t steps) {
  recomputeBasics();
  for (int64_t i = 0; i < steps; ++i) {
    const size_t row = findLeaving();
    if (row == rowCount()) return true;
    if (!step(row)) return false;
    if (++stepCount_ % kRefresh == 0) recomputeBasics();
  }
  return false;
}

std::vector<double> FlowSimplex::values() const {
  std::vector<double> values(columns_.size(), 0);
  for (size_t j = 0; j < values.size(); ++j) {
    if (rowOf_[j] >= 0) values[j] = value_[static_cast<size_t>(rowOf_[j])];
    if (rowOf_[j] < 0 && atMost_[j]) values[j] = columns_[j].most;
  }
  return values;
}

double FlowSimplex::cost() const {
  const std::vector<double> x = values();
  double sum = 0;
  for (size_t j = 0; j < x.size(); ++j) sum += x[j] * columns_[j].cost;
  return sum;
}

// The row that is furthest beyond its limits, measured along its edge.
size_t FlowSimplex::findLeaving() const {
  size_t found = rowCount();
  double worst = 0;
  for (size_t i = 0; i < rowCount(); ++i) {
    const double excess = std::max(-value_[i], value_[i] - most_[basic_[i]]);
    if (excess <= kPrimal) continue;
    const double score = excess * excess / weight_[i];
    if (score <= worst) continue;
    worst = score;
    found = i;
  }
  return found;
}

std::vector<double> FlowSimplex::inverseRow(size_t row) const {
  std::vector<double> result(rowCount());
  for (size_t k = 0; k < result.size(); ++k) result[k] = inverseColumn(k)[row];
  return result;
}

void FlowSimplex::priceRow(const std::vector<double>& inverseRow) {
  std::fill(slope_.begin(), slope_.end(), 0.0);
  for (size_t k = 0; k < inverseRow.size(); ++k) {
    const double scale = inverseRow[k];
    if (scale == 0) continue;
    for (const auto& [column, cell] : cellsOf_[k]) {
      slope_[static_cast<size_t>(column)] += scale * cell;
    }
    slope_[slack(k)] = scale;
  }
  for (const size_t variable : basic_) slope_[variable] = 0;
}

void FlowSimplex::addScaledColumn(size_t variable, double scale, std::vector<double>& sum) const {
  if (variable >= columns_.size()) {
    sum[variable - columns_.size()] += scale;
    return;
  }
  for (const auto& [at, cell] : columns_[variable].cells)
    sum[static_cast<size_t>(at)] += scale * cell;
}

std::vector<double> FlowSimplex::solveColumn(const std::vector<double>& column) const {
  std::vector<double> result(rowCount(), 0);
  for (size_t k = 0; k < column.size(); ++k) {
    const double scale = column[k];
    if (scale == 0) continue;
    addScaled(result.data(), inverseColumn(k), scale, result.size());
  }
  return result;
}

// The basic variable of `row` leaves at the limit that it is beyond. What enters is found by the
// ratio of reduced cost to slope; variables whose whole range is not enough to bring the row back
// change sides on the way.
bool FlowSimplex::step(size_t row) {
  const std::vector<double> ownRow = inverseRow(row);
  priceRow(ownRow);
  const double most = most_[basic_[row]];
  const bool isLow = value_[row] < 0;
  double excess = isLow ? -value_[row] : value_[row] - most;
  const double sign = isLow ? -1 : 1;
  struct Candidate {
    double ratio;
    double size;
    size_t variable;
    bool operator<(const Candidate& other) const {  // the smallest ratio is the top of a heap
      return std::pair(ratio, variable) > std::pair(other.ratio, other.variable);
    }
  };
  std::vector<Candidate> heap;
  for (size_t j = 0; j < slope_.size(); ++j) {
    if (slope_[j] == 0 || most_[j] == 0) continue;
    const double along = sign * slope_[j] * (atMost_[j] ? -1 : 1);
    if (along <= kPivot) continue;
    const double reduced = std::max(0.0, atMost_[j] ? -reduced_[j] : reduced_[j]);
    heap.push_back({reduced / along, along, j});
  }
  if (heap.empty()) return false;
  std::make_heap(heap.begin(), heap.end());
  const auto takeNext = [&heap] {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate next = heap.back();
    heap.pop_back();
    return next;
  };
  std::vector<Candidate> passed;
  Candidate entering = takeNext();
  for (; !heap.empty(); entering = takeNext()) {
    const double range = entering.size * most_[entering.variable];
    if (excess - range <= 0) break;
    excess -= range;
    passed.push_back(entering);
  }
  // Of nearly equal ratios the largest slope is the safest.
  const double limit = entering.ratio + kSameRatio;
  while (!heap.empty() && heap.front().ratio <= limit) {
    const Candidate next = takeNext();
    if (next.size > entering.size) entering = next;
  }
  std::vector<double> moved(rowCount(), 0);
  for (const Candidate& one : passed) {
    const size_t j = one.variable;
    const double range = most_[j];
    if (range == kInfinity) return false;
    addScaledColumn(j, atMost_[j] ? -range : range, moved);
    atMost_[j] = !atMost_[j];
  }
  if (!passed.empty()) {
    const std::vector<double> change = solveColumn(moved);
    for (size_t i = 0; i < rowCount(); ++i) value_[i] -= change[i];
  }
  const size_t j = entering.variable;
  std::vector<double> column(rowCount(), 0);
  addScaledColumn(j, 1, column);
  column = solveColumn(column);
  if (std::abs(column[row]) < kPivot / 10) return false;
  const double target = isLow ? 0 : most;
  const double distance = (value_[row] - target) / column[row];
  for (size_t i = 0; i < rowCount(); ++i) value_[i] -= distance * column[i];
  const double entered = (atMost_[j] ? most_[j] : 0) + distance;
  const double theta = reduced_[j] / slope_[j];
  for (size_t k = 0; k < slope_.size(); ++k) {
    if (slope_[k] != 0) reduced_[k] -= theta * slope_[k];
  }
  const size_t left = basic_[row];
  reduced_[left] = -theta;
  reduced_[j] = 0;
  rowOf_[left] = -1;
  atMost_[left] = !isLow;
  pivot(row, ownRow, column);
  basic_[row] = j;
  rowOf_[j] = static_cast<int32_t>(row);
  value_[row] = entered;
  return true;
}

void FlowSimplex::pivot(size_t row, const std::vector<double>& inverseRow,
                        const std::vector<double>& column) {
  const size_t count = rowCount();
  const double own = weight_[row];
  const double factor = 1 / column[row];
  std::vector<double> ratios(count);
  for (size_t i = 0; i < count; ++i) ratios[i] = column[i] * factor;
  ratios[row] = 1 - factor;
  // The inverse times its own row, before it changes.
  std::vector<double> tau(count, 0);
  for (size_t k = 0; k < count; ++k) {
    const double scale = inverseRow[k];
    if (scale == 0) continue;
    addScaledAndChange(tau.data(), inverseColumn(k), scale, ratios.data(), count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (i == row || column[i] == 0) continue;
    weight_[i] =
        std::max(weight_[i] - 2 * ratios[i] * tau[i] + ratios[i] * ratios[i] * own, kLeastWeight);
  }
  weight_[row] = std::max(own * factor * factor, kLeastWeight);
}

void FlowSimplex::recomputeBasics() {
  std::vector<double> rest(rowCount(), 0);
  for (size_t i = 0; i < rowCount(); ++i) rest[i] = rows_[i].limit;
  for (size_t j = 0; j < columns_.size(); ++j) {
    if (rowOf_[j] < 0 && atMost_[j]) addScaledColumn(j, -columns_[j].most, rest);
  }
  value_ = solveColumn(rest);
}

}  // namespace stowage::planner
