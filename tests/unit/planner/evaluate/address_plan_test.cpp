// SPDX-License-Identifier: Apache-2.0
//
// Offsets for the live ranges, temporaries and host copies of an expansion.
#include "planner/evaluate/address_plan.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using tests::units;
using enum ir::GapAction;
using Offsets = std::vector<int64_t>;

AddressPlan planFor(const GapTable& table, const std::vector<ir::GapAction>& actions,
                    int64_t prefetchLimit) {
  const Expansion expansion = llvm::cantFail(expand(table, actions));
  const CopySchedule copies = scheduleCopies(table, expansion, prefetchLimit);
  const EnqueueOrder order = findEnqueueOrder(table, expansion, copies);
  const DeviceItems device = collectDeviceItems(table, expansion, order);
  AddressPlan plan = planAddresses(table, device, order.period, prefetchLimit);
  EXPECT_GE(plan.devicePeak, device.leastPeak);
  planHostAddresses(table, order, plan);
  return plan;
}

// Live ranges [2,8) and [10,18) of `a` and temporaries [8,10) of launch 3: all at offset 0.
TEST(AddressPlan, TheWorkedStepFitsIntoEightUnits) {
  const tests::WorkedPlan plan;
  const AddressPlan addresses = planFor(plan.table, plan.actions, units(8));
  EXPECT_EQ(addresses.offsets, (Offsets{0, 0}));
  EXPECT_EQ(addresses.temps, (Offsets{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(addresses.delays, (Offsets{0, 0}));
  EXPECT_EQ(addresses.devicePeak, units(8));
  EXPECT_EQ(addresses.hosts, Offsets{0});
  EXPECT_EQ(addresses.hostPeak, units(8));
  const AddressPlan kept = planFor(plan.table, {kKeep, kKeep, kKeep}, units(8));
  EXPECT_EQ(kept.devicePeak, units(16));
  EXPECT_NE(kept.offsets[0], kept.temps[3]);
  EXPECT_EQ(kept.hostPeak, 0);
}

// The relu lands on its operand: two storages of 3 units have one address.
TEST(AddressPlan, AResultThatReusesItsOperandHasItsOffset) {
  const tests::SmallStep small{.items = {{Role::kActivation, 3}, {Role::kActivation, 3}},
                               .nodes = {{.op = "aten.mm.default", .results = {0}},
                                         {.op = "aten.relu.default", .reads = {0}, .results = {1}},
                                         {.op = "test.read.default", .reads = {1}}}};
  const std::vector<ir::GapAction> keep(4, kKeep);
  const tests::SmallProblem reused(small);
  EXPECT_EQ(planFor(reused.table, keep, units(6)).offsets, (Offsets{0, 0}));
  EXPECT_EQ(planFor(reused.table, keep, units(6)).devicePeak, units(3));
  const tests::SmallProblem apart(small, {.inPlaceReuse = false});
  EXPECT_EQ(planFor(apart.table, keep, units(6)).devicePeak, units(6));
}

// Libraries hold a unit and a byte at the bottom: two units with the alignment.
TEST(AddressPlan, NothingLiesOnReservedBytes) {
  ir::Target target = tests::smallTarget();
  target.reserved = {{.what = "cublas", .bytes = Bytes(units(1) + 1)}};
  const tests::SmallProblem step(
      {.items = {{Role::kFrozen, 4}}, .nodes = {{.op = "test.read.default", .reads = {0}}}}, {},
      target);
  const AddressPlan addresses = planFor(step.table, {kKeep}, units(8));
  EXPECT_EQ(addresses.offsets, Offsets{units(2)});
  EXPECT_EQ(addresses.devicePeak, units(6));
}

// s0 is back before s1 is made, so both use the same host bytes. A parameter never shares its own.
TEST(AddressPlan, HostCopiesShareBytesUnlessTheHostKeepsThem) {
  const tests::SmallProblem step(
      {.items = {{Role::kActivation, 2}, {Role::kActivation, 1}, {Role::kFrozen, 4}},
       .nodes = {{.op = "test.make.default", .results = {0}},
                 {.op = "test.other.default", .reads = {2}},
                 {.op = "test.read.default", .reads = {0}},
                 {.op = "test.make.default", .results = {1}},
                 {.op = "test.other.default"},
                 {.op = "test.read.default", .reads = {1}}}});
  const AddressPlan addresses =
      planFor(step.table, {/*s0*/ kHost, kKeep, /*s1*/ kHost, kKeep, /*s2*/ kHost}, units(8));
  EXPECT_EQ(addresses.hosts[0], addresses.hosts[1]);
  EXPECT_EQ(addresses.hostPeak, units(4 + 2));
}

}  // namespace
}  // namespace stowage::planner
