// SPDX-License-Identifier: Apache-2.0
//
// The simulation of copies looks at one period of several, which need not be alike. These rules
// hold whatever it found: what is delivered with a step, and a node on the host, is enqueued in
// that step; what takes bytes from the host is enqueued after what gave the host these bytes.
#ifndef STOWAGE_PLANNER_EVALUATE_KEEP_ORDER_H_
#define STOWAGE_PLANNER_EVALUATE_KEEP_ORDER_H_

#include "planner/evaluate/copy_schedule.h"

namespace stowage::planner {

/// Moves starts in `copies` where they break a rule.
void keepOrder(const Expansion& expansion, CopySchedule& copies);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_KEEP_ORDER_H_
