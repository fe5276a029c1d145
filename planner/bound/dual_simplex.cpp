// SPDX-License-Identifier: Apache-2.0
#include "planner/bound/dual_simplex.h"

#include <cmath>
#include <cstddef>

namespace stowage::planner {

namespace {

constexpr double kTolerance = 1e-10;

// Rows are kept as slack_i = sum_j a_ij x_j - limit_i, solved for the basic variables. Variables
// 0..n-1 are columns, n..n+m-1 slacks. The last entry of a tableau row is its constant, the last
// row the reduced costs with minus the value.
class Tableau {
 public:
  explicit Tableau(const LinearProgram& program)
      : columns_(program.cost.size()), rows_(program.rows.size()) {
    for (size_t i = 0; i < rows_; ++i) {
      cells_.push_back(program.rows[i]);
      cells_.back().push_back(-program.limits[i]);
      basic_.push_back(columns_ + i);
    }
    cells_.push_back(program.cost);
    cells_.back().push_back(0);
    for (size_t j = 0; j < columns_; ++j) free_.push_back(j);
  }

  bool solve() {
    const size_t most = 50 * (rows_ + columns_) + 100;
    for (size_t round = 0; round < most; ++round) {
      const size_t row = findInfeasible(/*byIndex=*/round > most / 2);
      if (row == rows_) return true;
      const size_t column = findEntering(row);
      if (column == columns_) return false;
      pivot(row, column);
    }
    return false;
  }

  LinearSolution solution() const {
    LinearSolution result{.solved = true,
                          .value = cells_[rows_].back(),
                          .x = std::vector<double>(columns_, 0),
                          .prices = std::vector<double>(rows_, 0)};
    for (size_t i = 0; i < rows_; ++i) {
      if (basic_[i] < columns_) result.x[basic_[i]] = cells_[i].back();
    }
    for (size_t j = 0; j < columns_; ++j) {
      if (free_[j] >= columns_) result.prices[free_[j] - columns_] = cells_[rows_][j];
    }
    return result;
  }

 private:
  size_t findInfeasible(bool byIndex) const {
    size_t found = rows_;
    double worst = -kTolerance * 100;
    for (size_t i = 0; i < rows_; ++i) {
      const double value = cells_[i].back();
      if (value >= worst) continue;
      found = i;
      if (byIndex) return found;
      worst = value;
    }
    return found;
  }

  // The column whose reduced cost reaches zero first keeps all others from becoming negative.
  size_t findEntering(size_t row) const {
    size_t found = columns_;
    double best = 0;
    for (size_t j = 0; j < columns_; ++j) {
      const double slope = cells_[row][j];
      if (slope <= kTolerance) continue;
      const double ratio = cells_[rows_][j] / slope;
      const bool isBetter = found == columns_ || ratio < best - kTolerance ||
                            (ratio < best + kTolerance && slope > cells_[row][found]);
      if (!isBetter) continue;
      found = j;
      best = ratio;
    }
    return found;
  }

  // Solves row's equation for its free variable `column` and puts it into all others.
  void pivot(size_t row, size_t column) {
    std::vector<double>& own = cells_[row];
    const double factor = 1 / own[column];
    for (double& cell : own) cell *= -factor;
    own[column] = factor;
    for (size_t i = 0; i <= rows_; ++i) {
      if (i == row) continue;
      const double scale = cells_[i][column];
      if (scale == 0) continue;
      cells_[i][column] = 0;
      for (size_t j = 0; j < own.size(); ++j) cells_[i][j] += scale * own[j];
    }
    std::swap(basic_[row], free_[column]);
  }

  size_t columns_;
  size_t rows_;
  std::vector<std::vector<double>> cells_;
  std::vector<size_t> basic_;  // by row
  std::vector<size_t> free_;   // by column
};

}  // namespace

LinearSolution solveLinearProgram(const LinearProgram& program) {
  Tableau tableau(program);
  if (!tableau.solve()) return {};
  return tableau.solution();
}

}  // namespace stowage::planner
