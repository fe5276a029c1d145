// SPDX-License-Identifier: Apache-2.0
//
// Puts the results of an evaluation into a timetable: residencies from live ranges and host copies,
// commands in enqueue order, where everything is valid at the boundary, and exact times from the
// dependencies that the addresses imply.
#ifndef STOWAGE_PLANNER_EVALUATE_TIMETABLE_WRITER_H_
#define STOWAGE_PLANNER_EVALUATE_TIMETABLE_WRITER_H_

#include "planner/evaluate/address_plan.h"
#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/disk_copies.h"
#include "planner/evaluate/enqueue_order.h"
#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/expand.h"
#include "planner/problem/timetable.h"

namespace stowage::planner {

struct EvaluationParts {
  const GapTable& table;
  const Expansion& expansion;
  const CopySchedule& copies;
  const EnqueueOrder& order;
  const AddressPlan& addresses;
  const DiskCopies& disk;
  const Actions& actions;
};

Timetable writeTimetable(const EvaluationParts& parts);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_TIMETABLE_WRITER_H_
