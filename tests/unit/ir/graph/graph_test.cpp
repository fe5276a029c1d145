// SPDX-License-Identifier: Apache-2.0
//
// Accesses and versions as the builder derives them, names, and the types underneath.

#include "ir/graph/graph.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/graph/liveness.h"
#include "ir/schedule/schedule.h"

namespace stowage::ir {
namespace {

TensorType matrix(int64_t rows, int64_t columns) {
  return {.sizes = {rows, columns}, .strides = {columns, 1}};
}

// x (input), w (parameter), and helpers to add nodes over them.
struct Sample {
  GraphBuilder builder{"sample"};
  StorageId x, w;
  ValueId xv, wv;

  Sample() {
    x = builder.addStorage({.name = "x", .bytes = Bytes(64), .role = Role::kInput});
    w = builder.addStorage(
        {.name = "w", .bytes = Bytes(64), .role = Role::kParameter, .persistent = true});
    xv = builder.addValue({.name = "x", .storage = x, .type = matrix(4, 4)});
    wv = builder.addValue({.name = "w", .storage = w, .type = matrix(4, 4)});
  }

  ValueId fresh(const std::string& name) {
    const StorageId storage = builder.addStorage({.name = name, .bytes = Bytes(64)});
    return builder.addValue({.name = name, .storage = storage, .type = matrix(4, 4)});
  }
};

TEST(Graph, FreshResultIsWrittenWholeAndAliasesAddNothing) {
  Sample sample;
  const ValueId h = sample.fresh("h");
  const ValueId ht = sample.builder.addValue(
      {.name = "ht", .storage = sample.builder.value(h).storage, .type = matrix(4, 4)});
  sample.builder.addNode({.op = "aten.mm.default",
                          .args = {ValueArg{sample.xv}, ValueArg{sample.wv}},
                          .results = {h}});
  sample.builder.addNode({.op = "aten.t.default", .args = {ValueArg{h}}, .results = {ht}});
  const Graph graph = std::move(sample.builder).finish();

  const StorageId made = graph.value(h).storage;
  EXPECT_EQ(graph.accesses(NodeId(0)).vec(),
            (std::vector<Access>{{.storage = sample.x, .readVersion = 0},
                                 {.storage = sample.w, .readVersion = 0},
                                 {.storage = made, .writtenVersion = 1, .whole = true}}));
  EXPECT_EQ(graph.accesses(NodeId(1)).vec(),
            (std::vector<Access>{{.storage = made, .readVersion = 1}}));
  EXPECT_EQ(graph.lastVersion(made), 1);
  EXPECT_EQ(graph.lastVersion(sample.w), 0);
}

TEST(Graph, InPlaceReadsAndWritesWholeWriteDoesNotRead) {
  Sample sample;
  sample.builder.addNode({.op = "aten.add_.Tensor",
                          .args = {ValueArg{sample.wv}, ValueArg{sample.xv}, int64_t{1}},
                          .results = {sample.wv},
                          .writes = {{.value = sample.wv}}});
  sample.builder.addNode({.op = "aten.zero_.default",
                          .args = {ValueArg{sample.wv}},
                          .results = {sample.wv},
                          .writes = {{.value = sample.wv, .whole = true}}});
  const Graph graph = std::move(sample.builder).finish();
  EXPECT_EQ(graph.accesses(NodeId(0))[0],
            (Access{.storage = sample.w, .readVersion = 0, .writtenVersion = 1}));
  EXPECT_EQ(graph.accesses(NodeId(1)).vec(),
            (std::vector<Access>{{.storage = sample.w, .writtenVersion = 2, .whole = true}}));
  EXPECT_EQ(graph.lastVersion(sample.w), 2);
}

TEST(Graph, WholeWriteTargetThatIsAlsoPassedElsewhereIsRead) {
  Sample sample;
  const ValueId view =
      sample.builder.addValue({.name = "view", .storage = sample.w, .type = matrix(4, 4)});
  sample.builder.addNode({.op = "aten.copy_.default",
                          .args = {ValueArg{sample.wv}, ValueArg{view}},
                          .writes = {{.value = sample.wv, .whole = true}}});
  sample.builder.addNode({.op = "aten.copy_.default",
                          .args = {ValueArg{sample.wv}, ValueArg{sample.wv}},
                          .writes = {{.value = sample.wv, .whole = true}}});
  const Graph graph = std::move(sample.builder).finish();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        graph.accesses(NodeId(i)).vec(),
        (std::vector<Access>{{.storage = sample.w, .readVersion = i, .writtenVersion = i + 1}}));
  }
}

TEST(Graph, ListElementsAndUndefinedResultsAreHandled) {
  Sample sample;
  const ValueId a = sample.fresh("a");
  sample.builder.addNode({.op = "aten.split.default",
                          .args = {ValueList{{sample.xv}, {ValueId()}, {sample.xv}}},
                          .results = {ValueId(), a}});
  const Graph graph = std::move(sample.builder).finish();
  EXPECT_EQ(graph.accesses(NodeId(0)).size(), 2u);
  EXPECT_TRUE(graph.accesses(NodeId(0))[0].reads());
  EXPECT_TRUE(graph.accesses(NodeId(0))[1].whole);
}

TEST(Graph, BuilderKeepsIdsOfACopiedGraphAndDropsNodes) {
  Sample sample;
  const ScopeId scope = sample.builder.internScope("fc");
  EXPECT_EQ(sample.builder.internScope("fc"), scope);
  EXPECT_FALSE(sample.builder.internScope("").isValid());
  sample.builder.addNode({.op = "aten.relu_.default",
                          .args = {ValueArg{sample.wv}},
                          .writes = {{.value = sample.wv}},
                          .phase = Phase::kBackward,
                          .scope = scope});
  const Graph graph = std::move(sample.builder).finish();
  EXPECT_EQ(graph.describeNode(NodeId(0)), "aten.relu_.default (fc, backward)");

  GraphBuilder copy(graph);
  EXPECT_EQ(copy.internScope("fc"), scope);
  EXPECT_EQ(copy.internScope("new"), ScopeId(1));
  copy.addNode({.op = "aten.relu.default", .args = {ValueArg{sample.xv}}});
  const Graph changed = std::move(copy).finish();
  EXPECT_EQ(changed.nodes().size(), 1u);
  EXPECT_EQ(changed.describeNode(NodeId(0)), "aten.relu.default (forward)");
  EXPECT_EQ(changed.lastVersion(sample.w), 0);
}

TEST(Graph, ReferencesToNothingHaveNoAccess) {
  GraphBuilder builder("broken");
  builder.addValue({.name = "v", .storage = StorageId(7)});
  builder.addNode(
      {.op = "aten.relu.default", .args = {ValueArg{ValueId(0)}, ValueArg{ValueId(3)}}});
  const Graph graph = std::move(builder).finish();
  EXPECT_TRUE(graph.accesses(NodeId(0)).empty());
}

TEST(Liveness, TouchesAndRangesOfEveryKindOfStorage) {
  Sample sample;
  const ValueId h = sample.fresh("h");
  sample.builder.addNode(
      {.op = "aten.relu.default", .args = {ValueArg{sample.xv}}, .results = {h}});
  sample.builder.addNode({.op = "aten.add_.Tensor",
                          .args = {ValueArg{sample.wv}, ValueArg{h}, int64_t{1}},
                          .writes = {{.value = sample.wv}}});
  sample.builder.addNode({.op = "aten.zero_.default",
                          .args = {ValueArg{sample.wv}},
                          .writes = {{.value = sample.wv, .whole = true}}});
  const Graph graph = std::move(sample.builder).finish();
  const std::vector<StorageLife> lives = computeLives(graph);
  EXPECT_EQ(lives[0].live, (NodeRange{0, 1}));
  EXPECT_EQ(lives[1].live, (NodeRange{0, 3}));
  EXPECT_EQ(lives[2].live, (NodeRange{0, 2}));
  ASSERT_EQ(lives[1].touches.size(), 2u);
  EXPECT_EQ(lives[1].touches[0].version, 1);
  EXPECT_TRUE(lives[1].touches[1].whole);
  EXPECT_EQ(lives[1].touches[1].position, 2);
  // x and h are 64 bytes each, rounded to 128; w stays for the whole step.
  EXPECT_EQ(computeKeepAllBytes(graph, 128, {Bytes(5), Bytes(0), Bytes(0)}),
            (std::vector<int64_t>{128 * 3 + 5, 128 * 2, 128}));
}

TEST(Liveness, HostAndUntouchedStoragesCountNothing) {
  Sample sample;
  sample.builder.storage(sample.x).home = Space::kHost;
  sample.builder.addNode({.op = "aten.relu.default", .args = {ValueArg{sample.xv}}});
  const Graph graph = std::move(sample.builder).finish();
  EXPECT_EQ(computeKeepAllBytes(graph, 512, {Bytes(0)}), (std::vector<int64_t>{0}));
  EXPECT_TRUE(computeLives(graph)[1].live.isEmpty());
}

// A step with a NaN in it (logdet's backward, masked_fill) is not a changed one after a pass that
// changed nothing.
TEST(Graph, ComparesNumbersBitByBit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto made = [](const Argument& argument) {
    Sample sample;
    sample.builder.addNode({.op = "aten.clamp.default", .args = {ValueArg{sample.xv}, argument}});
    return std::move(sample.builder).finish();
  };
  EXPECT_TRUE(made(nan) == made(nan));
  EXPECT_TRUE(made(nan) == made(-nan));
  EXPECT_TRUE(made(ComplexArg{nan, 1}) == made(ComplexArg{nan, 1}));
  EXPECT_TRUE(made(NumberList{1.0, nan}) == made(NumberList{1.0, nan}));
  EXPECT_TRUE(made(WrappedNumberArg{.value = nan}) == made(WrappedNumberArg{.value = nan}));
  EXPECT_FALSE(made(nan) == made(1.0));
  EXPECT_FALSE(made(0.0) == made(-0.0));
  EXPECT_FALSE(made(1.0) == made(int64_t{1}));
  EXPECT_FALSE(made(NumberList{1.0}) == made(NumberList{1.0, 1.0}));
}

TEST(Names, EveryEnumeratorReadsBack) {
  for (int i = 0; i <= static_cast<int>(Role::kOutput); ++i) {
    EXPECT_EQ(findRole(roleName(static_cast<Role>(i))), static_cast<Role>(i));
  }
  for (int i = 0; i <= static_cast<int>(DType::kC128); ++i) {
    EXPECT_EQ(findDType(dtypeName(static_cast<DType>(i))), static_cast<DType>(i));
  }
  for (int i = 0; i < kStreamCount; ++i) {
    EXPECT_EQ(findStream(streamName(static_cast<Stream>(i))), static_cast<Stream>(i));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(findLevel(levelName(static_cast<Level>(i))), static_cast<Level>(i));
    EXPECT_EQ(findGapAction(gapActionName(static_cast<GapAction>(i))), static_cast<GapAction>(i));
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(findPhase(phaseName(static_cast<Phase>(i))), static_cast<Phase>(i));
    EXPECT_EQ(findSpace(spaceName(static_cast<Space>(i))), static_cast<Space>(i));
    EXPECT_EQ(findGraphMode(graphModeName(static_cast<GraphMode>(i))), static_cast<GraphMode>(i));
  }
  EXPECT_EQ(findDeviceKind("cuda"), DeviceKind::kCuda);
  EXPECT_FALSE(findRole("nothing"));
  EXPECT_FALSE(findDType("f33"));
}

TEST(Schedule, ArenaBytesOfAMissingSpaceAreZero) {
  Schedule schedule;
  schedule.arenas = {{.space = Space::kHost, .bytes = Bytes(7)}};
  EXPECT_EQ(schedule.arenaBytes(Space::kHost), Bytes(7));
  EXPECT_EQ(schedule.arenaBytes(Space::kDisk), Bytes(0));
}

}  // namespace
}  // namespace stowage::ir
