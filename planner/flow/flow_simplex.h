// SPDX-License-Identifier: Apache-2.0
//
// A linear program with sparse columns: minimise cost . x with rows . x <= limits, or = limits, and
// 0 <= x <= most, where no cost is negative. Solved by the dual simplex method with bounded
// variables from the all-slack basis; the inverse of the basis is dense. For some hundred rows and
// some thousand columns. Deterministic: one thread, no clock.
#ifndef STOWAGE_PLANNER_FLOW_FLOW_SIMPLEX_H_
#define STOWAGE_PLANNER_FLOW_FLOW_SIMPLEX_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace stowage::planner {

struct FlowColumn {
  double cost = 0;                                         // not negative
  double most = 0;                                         // infinity: no limit
  llvm::SmallVector<std::pair<int32_t, double>, 8> cells;  // (row, coefficient)
};

struct FlowRow {
  double limit = 0;
  bool isEquality = false;
};

class FlowSimplex {
 public:
  FlowSimplex(std::vector<FlowRow> rows, std::vector<FlowColumn> columns);

  /// False: no feasible point, or `steps` basis changes were not enough; `values` is the last point
  /// either way. May be called again after addRow; goes on from the basis it has.
  bool solve(int64_t steps);
  /// By column.
  std::vector<double> values() const;
  /// A further row over existing columns.
  void addRow(double limit, llvm::ArrayRef<std::pair<int32_t, double>> cells);
  /// cost . x at the last point.
  double cost() const;
  int64_t stepCount() const { return stepCount_; }

 private:
  size_t rowCount() const { return basic_.size(); }
  size_t slack(size_t row) const { return columns_.size() + row; }
  double* inverseColumn(size_t column) { return inverse_.data() + column * stride_; }
  const double* inverseColumn(size_t column) const { return inverse_.data() + column * stride_; }
  void widen(size_t rows);
  size_t findLeaving() const;
  std::vector<double> inverseRow(size_t row) const;
  void priceRow(const std::vector<double>& inverseRow);
  bool step(size_t row);
  void addScaledColumn(size_t variable, double scale, std::vector<double>& sum) const;
  std::vector<double> solveColumn(const std::vector<double>& column) const;
  void pivot(size_t row, const std::vector<double>& inverseRow, const std::vector<double>& column);
  void recomputeBasics();

  using Cells = llvm::SmallVector<std::pair<int32_t, double>, 4>;

  std::vector<FlowRow> rows_;
  std::vector<FlowColumn> columns_;
  std::vector<Cells> cellsOf_;   // by row: (column, coefficient)
  std::vector<double> inverse_;  // of the basis: by row of the program, then of basic_
  size_t stride_ = 0;            // of inverse_, some rows more than there are
  std::vector<size_t> basic_;    // by row: columns first, then slacks
  std::vector<double> value_;    // by row: of its basic variable
  std::vector<double> weight_;   // by row: of steepest edges
  std::vector<double> most_;     // by variable; infinity: no limit
  std::vector<int32_t> rowOf_;   // by variable; -1: not basic
  std::vector<bool> atMost_;     // by variable that is not basic
  std::vector<double> reduced_;  // by variable: reduced costs
  std::vector<double> slope_;    // by variable: along the row that leaves
  int64_t stepCount_ = 0;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FLOW_FLOW_SIMPLEX_H_
