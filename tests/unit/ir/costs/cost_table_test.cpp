// SPDX-License-Identifier: Apache-2.0
//
// Signatures tell apart what costs differently and nothing else; fingerprints likewise for what a
// plan fits.

#include "ir/costs/cost_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

#include "ir/schedule/fingerprint.h"
#include "ir/text/parser.h"

namespace stowage::ir {
namespace {

TensorType matrix(DType dtype, int64_t rows, int64_t columns) {
  return {.dtype = dtype, .sizes = {rows, columns}, .strides = {columns, 1}};
}

// One node over two operands; `change` edits it before it is built.
struct Draft {
  Storage a{.name = "a", .bytes = Bytes(128), .role = Role::kInput};
  Storage b{.name = "b", .bytes = Bytes(128), .role = Role::kParameter, .persistent = true};
  TensorType aType = matrix(DType::kF32, 4, 8);
  TensorType bType = matrix(DType::kF32, 4, 8);
  bool shared = false;
  Node node{.op = "aten.add.Tensor",
            .args = {ValueArg{ValueId(0)}, ValueArg{ValueId(1)}, int64_t{1}},
            .results = {ValueId(2)}};
  StepScalar scalar{.name = "lr", .value = 0.5};
  std::string resultName = "out";

  Graph build() const {
    GraphBuilder builder("draft");
    const StorageId first = builder.addStorage(a);
    const StorageId second = builder.addStorage(b);
    const StorageId third = builder.addStorage({.name = resultName, .bytes = Bytes(128)});
    builder.addValue({.name = a.name, .storage = first, .type = aType});
    builder.addValue({.name = b.name, .storage = shared ? first : second, .type = bType});
    builder.addValue({.name = resultName, .storage = third, .type = matrix(DType::kF32, 4, 8)});
    builder.addScalar(scalar);
    builder.addNode(node);
    return std::move(builder).finish();
  }
};

using Change = std::function<void(Draft&)>;

std::string signatureAfter(const Change& change) {
  Draft draft;
  change(draft);
  return nodeSignature(draft.build(), NodeId(0));
}

TEST(NodeSignature, IsReadable) {
  EXPECT_EQ(signatureAfter([](Draft&) {}),
            "aten.add.Tensor(%0:f32[4,8],%1:f32[4,8],1)->(%2:f32[4,8])");
  EXPECT_EQ(
      signatureAfter([](Draft& draft) {
        draft.node = {.op = "aten.mul_.Tensor",
                      .args = {ValueArg{ValueId(0)}, ScalarArg{ScalarId(0)},
                               WrappedNumberArg{.value = ScalarId(0)},
                               NumberList{true, int64_t{2}, 0.25, ScalarArg{ScalarId(0)}}},
                      .results = {ValueId(0), ValueId()},
                      .writes = {{.value = ValueId(0)}}};
      }),
      "aten.mul_.Tensor(inout %0:f32[4,8],#,wrapped(f64 #),[true,2,0.25,#])->(%0:f32[4,8],_)");
}

TEST(NodeSignature, IgnoresNamesRolesPlacesAndValuesOfStepScalars) {
  const std::string plain = signatureAfter([](Draft&) {});
  EXPECT_EQ(plain, signatureAfter([](Draft& draft) { draft.a.name = "other"; }));
  EXPECT_EQ(plain, signatureAfter([](Draft& draft) { draft.resultName = "other"; }));
  EXPECT_EQ(plain, signatureAfter([](Draft& draft) { draft.b.role = Role::kFrozen; }));
  EXPECT_EQ(plain, signatureAfter([](Draft& draft) { draft.node.phase = Phase::kBackward; }));
  const auto withScalar = [](double value) {
    return signatureAfter([value](Draft& draft) {
      draft.node.args[2] = ScalarArg{ScalarId(0)};
      draft.scalar.value = value;
    });
  };
  EXPECT_EQ(withScalar(1), withScalar(2));
}

TEST(NodeSignature, TellsApartWhatCostsDifferently) {
  const std::vector<Change> changes = {
      [](Draft&) {},
      [](Draft& draft) { draft.node.op = "aten.sub.Tensor"; },
      [](Draft& draft) { draft.aType.dtype = DType::kBF16; },
      [](Draft& draft) { draft.aType = matrix(DType::kF32, 8, 4); },
      [](Draft& draft) {
        draft.aType.strides = {1, 4};
      },
      [](Draft& draft) { draft.aType.offset = 1; },  // 4 bytes: other vector path
      [](Draft& draft) { draft.shared = true; },
      [](Draft& draft) { draft.node.args[2] = int64_t{2}; },
      [](Draft& draft) { draft.node.args[2] = 1.0; },
      [](Draft& draft) { draft.node.args[2] = ScalarArg{ScalarId(0)}; },
      [](Draft& draft) { draft.node.args[2] = std::string("1"); },
      [](Draft& draft) { draft.node.args[2] = NoneArg{}; },
      [](Draft& draft) { draft.node.args[2] = true; },
      [](Draft& draft) {
        draft.node.args[2] = EnumArg{"dtype", "f32"};
      },
      [](Draft& draft) { draft.node.writes = {{.value = ValueId(0)}}; },
      [](Draft& draft) { draft.node.writes = {{.value = ValueId(0), .whole = true}}; },
      [](Draft& draft) { draft.node.results = {ValueId()}; },
      [](Draft& draft) { draft.a.home = Space::kHost; },
  };
  std::set<std::string> distinct;
  for (const Change& change : changes) distinct.insert(signatureAfter(change));
  EXPECT_EQ(distinct.size(), changes.size());
  EXPECT_EQ(signatureAfter([](Draft& draft) { draft.aType.offset = 4; }),
            signatureAfter([](Draft&) {}))
      << "16 bytes further in is the same call";
}

TEST(ResolveCosts, FindsEveryNodeOrNamesTheFirstWithoutARow) {
  const Graph graph = Draft().build();
  CostTable table{.source = CostSource::kMeasured};
  Expected<NodeCosts> missing = resolveCosts(graph, table);
  ASSERT_FALSE(static_cast<bool>(missing));
  const PlanError error = takePayload(missing.takeError());
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.text(),
            "1 of 1 nodes have no row in the table of costs, first n0 aten.add.Tensor (forward): " +
                nodeSignature(graph, NodeId(0)));
  ASSERT_EQ(error.notes().size(), 1u);
  EXPECT_EQ(error.notes()[0],
            "the table is of another step, or of this one before it changed: profile the step "
            "again");

  table.bySignature[nodeSignature(graph, NodeId(0))] = {.work = Nanoseconds(7)};
  Expected<NodeCosts> found = resolveCosts(graph, table);
  ASSERT_TRUE(static_cast<bool>(found));
  ASSERT_EQ(found->nodes.size(), 1u);
  EXPECT_EQ(found->time(NodeId(0)), Nanoseconds(7));
  EXPECT_EQ(found->source, CostSource::kMeasured);
}

struct ThreeNodes {
  GraphMode mode = GraphMode::kNone;
  bool takesScalar = false;  // the last one, which updates
  std::vector<int64_t> work;
  std::vector<int64_t> launch;
  int64_t scalars = 0;
};

/// What the nodes cost under their mode.
std::vector<int64_t> timesOf(const ThreeNodes& nodes) {
  GraphBuilder builder("step");
  const StorageId x = builder.addStorage({.name = "x", .bytes = Bytes(128), .role = Role::kInput});
  const StorageId w = builder.addStorage(
      {.name = "w", .bytes = Bytes(128), .role = Role::kParameter, .persistent = true});
  const TensorType type = matrix(DType::kF32, 4, 8);
  const ValueId input = builder.addValue({.name = "x", .storage = x, .type = type});
  const ValueId weight = builder.addValue({.name = "w", .storage = w, .type = type});
  const ScalarId rate = builder.addScalar({.name = "lr", .value = 0.5});
  CostTable table;
  const auto add = [&](Phase phase, const char* name, Argument last) {
    const StorageId storage = builder.addStorage({.name = name, .bytes = Bytes(128)});
    const ValueId result = builder.addValue({.name = name, .storage = storage, .type = type});
    builder.addNode({.op = "aten.add.Tensor",
                     .args = {ValueArg{input}, ValueArg{weight}, std::move(last)},
                     .results = {result},
                     .phase = phase});
  };
  add(Phase::kForward, "a", int64_t{1});
  add(Phase::kBackward, "b", int64_t{2});
  add(Phase::kOptimizer, "c", nodes.takesScalar ? Argument(ScalarArg{rate}) : Argument(int64_t{3}));
  const Graph graph = std::move(builder).finish();
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    table.bySignature[nodeSignature(graph, NodeId(i))] = {.work = Nanoseconds(nodes.work[i]),
                                                          .launch = Nanoseconds(nodes.launch[i])};
  }
  table.scalars = Nanoseconds(nodes.scalars);
  Expected<NodeCosts> costs = resolveCosts(graph, table, nodes.mode);
  std::vector<int64_t> times;
  for (size_t i = 0; i < costs->nodes.size(); ++i) {
    EXPECT_EQ(costs->nodes[i].work, Nanoseconds(nodes.work[i]));
    times.push_back(costs->time(NodeId(i)).value());
  }
  return times;
}

using Times = std::vector<int64_t>;

TEST(ResolveCosts, AThreadThatIsAheadHoldsNothingUp) {
  // Launch overhead 27, work 30: the first two are launched while the step before runs.
  EXPECT_EQ(timesOf({.work = {2, 3, 25}, .launch = {10, 10, 7}}), (Times{2, 3, 25}));
}

TEST(ResolveCosts, ComputeWaitsWhereTheLaunchThreadIsBehind) {
  // Launch overhead 36, work 30. The last is launched at 36 and done at 61, when 25 of the next
  // step's are over: its first two wait for nothing, its last for what is left of 36.
  EXPECT_EQ(timesOf({.work = {2, 3, 25}, .launch = {10, 10, 16}}), (Times{2, 3, 31}));
  // Small ops behind a large one are launched while it runs.
  EXPECT_EQ(timesOf({.work = {25, 2, 3}, .launch = {20, 10, 6}}), (Times{31, 2, 3}));
  // Each is done before the next is launched.
  EXPECT_EQ(timesOf({.work = {1, 1, 1}, .launch = {5, 7, 9}}), (Times{5, 7, 9}));
}

TEST(ResolveCosts, OpsOfAGraphThatIsLaunchedAgainHaveNoLaunchOverhead) {
  for (const bool takesScalar : {false, true}) {
    ThreeNodes nodes = {.takesScalar = takesScalar, .work = {7, 7, 7}, .launch = {10, 10, 30}};
    EXPECT_EQ(timesOf(nodes), (Times{10, 10, 30}));
    // The update is launched while the graph runs.
    nodes.mode = GraphMode::kNoUpdate;
    EXPECT_EQ(timesOf(nodes), (Times{7, 7, 16}));
    nodes.mode = GraphMode::kWhole;
    EXPECT_EQ(timesOf(nodes), (Times{7, 7, 7}));
  }
}

TEST(ResolveCosts, UpdatesWaitForTheScalarsOfTheirStep) {
  ThreeNodes nodes = {.work = {1, 1, 1}, .launch = {5, 7, 9}, .scalars = 12};
  EXPECT_EQ(timesOf(nodes), (Times{5, 7, 9})) << "they are there when the update's turn comes";
  // The thread is done with the first two at 12, and free for the update at 30.
  nodes.scalars = 30;
  EXPECT_EQ(timesOf(nodes), (Times{5, 7, 27}));
  // The graph is launched at once, the update from 30 to 39.
  nodes.mode = GraphMode::kNoUpdate;
  EXPECT_EQ(timesOf(nodes), (Times{1, 1, 37}));
  // The graph of a whole step has them in it.
  nodes.mode = GraphMode::kWhole;
  EXPECT_EQ(timesOf(nodes), (Times{28, 1, 1}));
  // Nothing waits in steps that take longer.
  nodes.work = {20, 20, 20};
  EXPECT_EQ(timesOf(nodes), (Times{20, 20, 20}));
  nodes.mode = GraphMode::kNone;
  EXPECT_EQ(timesOf(nodes), (Times{20, 20, 20}));
}

std::string graphFingerprintAfter(const Change& change) {
  Draft draft;
  change(draft);
  return fingerprint(draft.build());
}

TEST(Fingerprint, OfAGraphFollowsWhatItComputes) {
  const std::vector<Change> changes = {
      [](Draft&) {},
      [](Draft& draft) { draft.a.name = "other"; },
      [](Draft& draft) { draft.a.bytes = Bytes(129); },
      [](Draft& draft) { draft.a.output = true; },
      [](Draft& draft) { draft.b.persistent = false; },
      [](Draft& draft) { draft.b.home = Space::kHost; },
      [](Draft& draft) { draft.aType.offset = 4; },
      [](Draft& draft) { draft.shared = true; },
      [](Draft& draft) { draft.node.args[2] = int64_t{2}; },
      [](Draft& draft) { draft.node.args[2] = 2.0; },
      [](Draft& draft) { draft.node.args[2] = ScalarArg{ScalarId(0)}; },
      [](Draft& draft) { draft.node.phase = Phase::kOptimizer; },
      [](Draft& draft) { draft.node.writes = {{.value = ValueId(0)}}; },
      [](Draft& draft) { draft.scalar.isInteger = true; },
  };
  std::set<std::string> distinct;
  for (const Change& change : changes) distinct.insert(graphFingerprintAfter(change));
  EXPECT_EQ(distinct.size(), changes.size());
  EXPECT_EQ(graphFingerprintAfter([](Draft& draft) { draft.scalar.value = 9; }),
            graphFingerprintAfter([](Draft&) {}));
}

// Plans on disk name these: if the number changes, kGraphStreamVersion must have changed with it.
TEST(Fingerprint, IsStable) {
  EXPECT_EQ(fingerprint(Draft().build()), "xxh3:10a4906751a97dfc");
  EXPECT_EQ(fingerprint(Target{}), "xxh3:9e57c96e55c42cbd");
}

TEST(Fingerprint, OfATargetIgnoresRatesAndCoversIdentity) {
  const Target plain;
  Target rates = plain;
  rates.memory = Bytes(1);
  rates.memoryBandwidth = BytesPerSecond(9);
  rates.profile = "other";
  EXPECT_EQ(fingerprint(rates), fingerprint(plain));
  std::set<std::string> distinct = {fingerprint(plain)};
  const std::vector<std::function<void(Target&)>> changes = {
      [](Target& target) { target.device = DeviceKind::kCuda; },
      [](Target& target) { target.alignBytes = 256; },
      [](Target& target) { target.intraOpThreads = 2; },
      [](Target& target) { target.deterministic = false; },
      [](Target& target) { target.computeCapability = 90; },
      [](Target& target) {
        target.libraries = {{"cudnn", "9.19"}};
      },
      [](Target& target) { target.reserved = {{.what = "cublas", .bytes = Bytes(1)}}; },
  };
  for (const auto& change : changes) {
    Target target = plain;
    change(target);
    distinct.insert(fingerprint(target));
  }
  EXPECT_EQ(distinct.size(), changes.size() + 1);
}

// Two of three parts of 256 bytes come from the other ranks, over a link of 1 byte/ns after 100 ns.
TEST(ResolveCosts, CollectivesTakeTheLinkAndAShareOfCompute) {
  const Graph graph = llvm::cantFail(parseGraph(R"(graph @ranks version=1 ranks=3 {
  parameter %w "w" : f32[64] shard of f32[192]
  %x "whole" : f32[192] = stowage.all_gather.default(%w, 3)
  %y : f32[192] = aten.relu.default(%x)
  %z : f32[192] = stowage.all_to_all.default(%y, 3)
})"));
  CostTable table{.source = CostSource::kGiven, .device = "test"};
  for (size_t i = 0; i < 3; ++i) {
    table.bySignature[nodeSignature(graph, NodeId(i))] = {.work = Nanoseconds(50)};
  }
  const NodeCosts unknown = llvm::cantFail(resolveCosts(graph, table));
  EXPECT_EQ(unknown.collectiveWork,
            (std::vector<Nanoseconds>{Nanoseconds(50), {}, Nanoseconds(50)}));
  EXPECT_EQ(unknown.totalTime(), Nanoseconds(50)) << "without the collectives";
  table.links.betweenRanks = {.bandwidth = BytesPerSecond(1'000'000'000),
                              .latency = Nanoseconds(100)};
  table.links.besideRanksPermille = 700;
  const NodeCosts costs = llvm::cantFail(resolveCosts(graph, table));
  EXPECT_EQ(costs.collectiveWork,
            (std::vector<Nanoseconds>{Nanoseconds(612), {}, Nanoseconds(612)}));
  EXPECT_EQ(costs.nodes[0].work, Nanoseconds(183)) << "three tenths of it";
  EXPECT_EQ(costs.nodes[1].work, Nanoseconds(50));
}

}  // namespace
}  // namespace stowage::ir
