// SPDX-License-Identifier: Apache-2.0
//
// A small dense linear program: minimise cost . x with rows . x >= limits and x >= 0, where no cost
// is negative. Solved by the dual simplex method from the all-slack basis. For a few dozen rows
// and columns; no attempt at sparsity.
#ifndef STOWAGE_PLANNER_BOUND_DUAL_SIMPLEX_H_
#define STOWAGE_PLANNER_BOUND_DUAL_SIMPLEX_H_

#include <vector>

namespace stowage::planner {

struct LinearProgram {
  std::vector<double> cost;               // by column, not negative
  std::vector<std::vector<double>> rows;  // each as long as cost
  std::vector<double> limits;             // by row
};

struct LinearSolution {
  bool solved = false;         // false: no feasible point, or rounding got in the way
  double value = 0;            // cost . x
  std::vector<double> x;       // by column
  std::vector<double> prices;  // by row: what a unit of its limit costs; not negative
};

LinearSolution solveLinearProgram(const LinearProgram& program);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_BOUND_DUAL_SIMPLEX_H_
