// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibrate/calibrate.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ir/text/parser.h"
#include "runtime/calibrate/op_measurement.h"
#include "runtime/calibrate/valid_values.h"
#include "runtime/torch/served_allocator.h"
#include "tests/support/or_fail.h"

// Ops whose answer is another one each time: in what they return, and in what they write in place.
namespace {
int calls = 0;
at::Tensor countCalls(const at::Tensor& x) { return at::full_like(x, ++calls); }
at::Tensor& countInPlace(at::Tensor& x) { return x.fill_(++calls); }
at::Tensor never(const at::Tensor& /*x*/) { TORCH_CHECK(false, "not today"); }
}  // namespace

TORCH_LIBRARY(stowage_test, library) {
  library.def("count(Tensor x) -> Tensor", &countCalls);
  library.def("never(Tensor x) -> Tensor", &never);
  library.def("count_(Tensor(a!) x) -> Tensor(a!)", &countInPlace);
}

namespace stowage::tests {
namespace {

/// Ops that did not repeat their bits in `repeats` runs, with how many runs differed.
std::set<std::pair<std::string, int>> findUnrepeated(const std::string& body, int repeats) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\n" + body + "\n}\n"));
  std::vector<runtime::UnrepeatedOp> found;
  orFail(runtime::calibrate(graph, {.intraOpThreads = 1,
                                    .runs = 1,
                                    .repeats = repeats,
                                    .unrepeated = &found,
                                    .known = {},
                                    .report = {}}));
  std::set<std::pair<std::string, int>> ops;
  for (const runtime::UnrepeatedOp& op : found) {
    ops.emplace(graph.node(op.node).op, op.different);
  }
  return ops;
}

TEST(Calibrate, OpsThatDoNotRepeatTheirBitsAreFound) {
  EXPECT_EQ(findUnrepeated("input %x : f32[64]\n"
                           "%y : f32[64] = stowage_test.count.default(%x)\n"
                           "%z : f32[64] = aten.mul.Tensor(%y, %x)\n"
                           "%z = stowage_test.count_.default(inout %z)",
                           5),
            (std::set<std::pair<std::string, int>>{{"stowage_test.count.default", 4},
                                                   {"stowage_test.count_.default", 4}}));
}

TEST(Calibrate, OpsThatDrawFromTheSameStateRepeatTheirBits) {
  EXPECT_TRUE(findUnrepeated("input %x : f32[64,64]\n"
                             "%y : f32[64,64] = aten.bernoulli.p(%x, 0.5)\n"
                             "%y = aten.add_.Tensor(inout %y, %x)\n"
                             "%z : f32[64,64] = aten.mm.default(%x, %y)",
                             5)
                  .empty());
}

// Pivots are 1 or more, codes of errors are 0: one draw of integers does not suit both.
TEST(Calibrate, OpsThatLookAtTheirIntegersAreMeasured) {
  const ir::Graph graph = orFail(ir::parseGraph(
      "graph @g version=1 device=\"cpu\" {\n"
      "input %lu : f32[8,8]\n"
      "input %pivots : i32[8]\n"
      "input %b : f32[8,8]\n"
      "%y : f32[8,8] strides=[1,8] = aten.linalg_lu_solve.default(%lu, %pivots, %b, true, false)\n"
      "input %info : i32[64]\n"
      "aten._linalg_check_errors.default(%info, \"solve\", false)\n"
      "}\n"));
  const ir::CostTable table = orFail(
      runtime::calibrate(graph, {.intraOpThreads = 1, .runs = 1, .known = {}, .report = {}}));
  EXPECT_EQ(table.bySignature.size(), 2U);
}

// A GPU ends the process where a mask chooses more elements than its source has.
TEST(Calibrate, AMaskChoosesNoMoreElementsThanThereMayBe) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\n"
                            "input %x : f32[64]\n"
                            "input %mask : bool[64]\n"
                            "input %source : f32[2]\n"
                            "%y : f32[64] = aten.masked_scatter.default(%x, %mask, %source)\n"
                            "}\n"));
  const ir::NodeId node(0);
  const ir::ValueId mask = std::get<ir::ValueArg>(graph.node(node).args[1]).value;
  const std::optional<int64_t> bound = runtime::findIntegerBound(graph, node, mask);
  ASSERT_TRUE(bound);
  std::vector<uint8_t> bytes(64, 1);
  runtime::fillValidValues(ir::DType::kBool, {.end = *bound}, 7, bytes);
  EXPECT_EQ(bytes, std::vector<uint8_t>(64, 0));
}

TEST(Calibrate, AnOpThatTakesNoneOfTheValuesIsNamed) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\n"
                            "input %x : f32[8]\n"
                            "%y : f32[8] = stowage_test.never.default(%x)\n"
                            "}\n"));
  auto table =
      runtime::calibrate(graph, {.intraOpThreads = 1, .runs = 1, .known = {}, .report = {}});
  ASSERT_FALSE(static_cast<bool>(table));
  const std::string error = ir::describe(table.takeError());
  EXPECT_NE(error.find("stowage_test.never.default"), std::string::npos) << error;
  EXPECT_NE(error.find("not today (it was measured with made-up values"), std::string::npos)
      << error;
}

/// The CPU, as a device on which a call has less work than launch overhead.
class SlowlyLaunched final : public runtime::OpBench {
 public:
  void clear() override { buffers_.clear(); }
  ir::Expected<uint8_t*> place(ir::Space /*home*/, Bytes bytes) override {
    return buffers_.emplace_back(static_cast<size_t>(bytes.value())).data();
  }
  ir::Error fill(ir::Space /*home*/, uint8_t* at, Bytes bytes,
                 const runtime::OperandFill& fill) override {
    runtime::fillValidValues(fill.dtype, fill.integers, fill.seed,
                             {at, static_cast<size_t>(bytes.value())});
    return ir::success();
  }
  ir::Expected<runtime::CallTime> time(const std::string& /*name*/,
                                       llvm::function_ref<void()> call) override {
    call();
    ++calls_;
    return runtime::CallTime{.work = Nanoseconds(100 - calls_),
                             .launch = Nanoseconds(500 + calls_)};
  }
  runtime::AllocationSource& allocations() override { return allocations_; }

 private:
  int calls_ = 0;
  std::vector<std::vector<uint8_t>> buffers_;
  runtime::AllocationSource allocations_;
};

TEST(Calibrate, WorkAndLaunchOverheadAreToldApart) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\n"
                            "input %x : f32[8]\n"
                            "%y : f32[8] = aten.neg.default(%x)\n"
                            "}\n"));
  ir::CostTable table;
  std::thread measuring([&] {
    runtime::installServedAllocator();
    SlowlyLaunched bench;
    runtime::registerAllocatingThreads(&bench.allocations());
    orFail(runtime::measureOps(graph, {.intraOpThreads = 1, .runs = 3, .known = {}, .report = {}},
                               c10::Device(c10::DeviceType::CPU), bench, table));
    runtime::registerAllocatingThreads(nullptr);
  });
  measuring.join();
  // Two calls came before the three that are timed. Each figure is the least of its own.
  const ir::OpCost& cost = table.bySignature.at(ir::nodeSignature(graph, ir::NodeId(0)));
  EXPECT_EQ(cost.work, Nanoseconds(100 - 5));
  EXPECT_EQ(cost.launch, Nanoseconds(500 + 3));
}

}  // namespace
}  // namespace stowage::tests
