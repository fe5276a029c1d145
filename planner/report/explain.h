// SPDX-License-Identifier: Apache-2.0
//
// What holds the peak of an answer: the launch with the most bytes, and the storages that are on
// the device there, largest first. In bytes, before addresses: an infeasible error names them.
#ifndef STOWAGE_PLANNER_REPORT_EXPLAIN_H_
#define STOWAGE_PLANNER_REPORT_EXPLAIN_H_

#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/problem/gaps.h"

namespace stowage::planner {

struct PeakHolders {
  ir::NodeId node;
  Bytes bytes;   // all of them, temporaries and reserved regions included
  Bytes beside;  // of those, storages that the node does not use
  std::vector<ir::Infeasible::Holder> holders;  // largest first
  std::vector<ir::Infeasible::Group> groups;    // of all holders, most bytes first
};

/// Errors: as expand.
ir::Expected<PeakHolders> findPeakHolders(const GapTable& table, const Actions& actions);

/// What lies on the host, largest first. `prefetchLimit` as for evaluateActions.
std::vector<ir::Infeasible::Holder> findHostHolders(const GapTable& table, const Actions& actions,
                                                    Bytes prefetchLimit);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_REPORT_EXPLAIN_H_
