// SPDX-License-Identifier: Apache-2.0
//
// The generator of random steps is itself held to what its users count on: valid graphs, the same
// for a seed, with every feature turning up, and a text form that reads back to the same object.

#include "tests/support/random_graph.h"

#include <gtest/gtest.h>

#include <map>

#include "ir/graph/check_graph.h"
#include "ir/graph/liveness.h"
#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "tests/support/keep_all_schedule.h"

namespace stowage::tests {
namespace {

using namespace stowage::ir;  // NOLINT: a test about all of it

constexpr uint64_t kSeeds = 300;

// Both kinds of graphs, for one seed.
std::vector<Graph> graphsOf(uint64_t seed) { return {makeRandomStep(seed), makeTinyGraph(seed)}; }

TEST(RandomGraph, IsValidAndFollowsItsSeed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const Graph& graph : graphsOf(seed)) {
      ASSERT_EQ(describe(checkGraph(graph)), "") << "seed " << seed << "\n" << toText(graph);
    }
    EXPECT_EQ(makeRandomStep(seed), makeRandomStep(seed)) << "seed " << seed;
    EXPECT_EQ(makeTinyGraph(seed), makeTinyGraph(seed)) << "seed " << seed;
  }
}

TEST(RandomGraph, ReadsBackFromItsTextAndKeepsItsFingerprint) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const Graph& graph : graphsOf(seed)) {
      const std::string text = toText(graph);
      Expected<Graph> read = parseGraph(text);
      ASSERT_TRUE(static_cast<bool>(read)) << "seed " << seed << ": " << describe(read.takeError());
      ASSERT_EQ(*read, graph) << "seed " << seed << "\n" << text;
      ASSERT_EQ(toText(*read), text) << "seed " << seed;
      ASSERT_EQ(fingerprint(*read), fingerprint(graph)) << "seed " << seed;
      Expected<Graph> commented = parseGraph(toText(graph, {.comments = true}));
      ASSERT_TRUE(static_cast<bool>(commented)) << "seed " << seed;
      ASSERT_EQ(*commented, graph) << "seed " << seed;
    }
  }
}

TEST(RandomGraph, SchedulesReadBackFromTheirText) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const Graph& graph : graphsOf(seed)) {
      const Schedule schedule = makeKeepAllSchedule(graph, makeTestTarget());
      const std::string text = toText(graph, schedule);
      Expected<Module> read = parseModule(text);
      ASSERT_TRUE(static_cast<bool>(read)) << "seed " << seed << ": " << describe(read.takeError());
      ASSERT_TRUE(read->schedule.has_value());
      ASSERT_EQ(*read->schedule, schedule) << "seed " << seed;
      ASSERT_EQ(toText(read->graph, *read->schedule), text) << "seed " << seed;
    }
  }
}

// Versions again, the plain way: replay the order and count.
TEST(RandomGraph, AccessesAgreeWithAReplayOfTheOrder) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (const Graph& graph : graphsOf(seed)) {
      std::map<int32_t, int32_t> versions;
      for (size_t i = 0; i < graph.nodes().size(); ++i) {
        const Node& node = graph.nodes()[i];
        std::map<int32_t, bool> reads, writes;
        forEachTensorArgument(node, [&](ValueId id) {
          const bool whole = std::any_of(
              node.writes.begin(), node.writes.end(),
              [&](const Node::Write& write) { return write.value == id && write.whole; });
          if (!whole) reads[graph.value(id).storage.raw()] = true;
        });
        for (const Node::Write& write : node.writes) {
          writes[graph.value(write.value).storage.raw()] = true;
        }
        for (const ValueId id : node.results) {
          if (id.isValid() && versions[graph.value(id).storage.raw()] == 0) {
            const Storage& storage = graph.storage(graph.value(id).storage);
            if (!storage.persistent && storage.role != Role::kInput) {
              writes[graph.value(id).storage.raw()] = true;
            }
          }
        }
        for (const Access& access : graph.accesses(NodeId(i))) {
          const int32_t id = access.storage.raw();
          ASSERT_EQ(access.readVersion, reads.count(id) ? versions[id] : -1) << "seed " << seed;
          if (writes.count(id)) ++versions[id];
          ASSERT_EQ(access.writtenVersion, writes.count(id) ? versions[id] : -1) << "seed " << seed;
          ASSERT_EQ(access.whole, writes.count(id) && !reads.count(id)) << "seed " << seed;
        }
      }
    }
  }
}

class Counter {
 public:
  void see(const Graph& graph) {
    for (const Storage& storage : graph.storages()) {
      count(std::string("role ") + roleName(storage.role));
      if (storage.persistent && storage.role == Role::kGradient) count("persistent gradient");
      if (storage.home == Space::kHost) count("host storage");
    }
    for (const Value& value : graph.values()) {
      if (!value.type.isContiguous()) count("strided view");
      if (value.type.offset != 0) count("view with an offset");
      if (value.type.dtype == DType::kBF16) count("bf16");
    }
    for (size_t i = 0; i < graph.nodes().size(); ++i) seeNode(graph, NodeId(i));
  }
  void count(const std::string& feature) { ++seen_[feature]; }
  int seen(const std::string& feature) const {
    const auto entry = seen_.find(feature);
    return entry == seen_.end() ? 0 : entry->second;
  }

 private:
  void seeNode(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const OpInfo& info = lookUpOp(node.op);
    count(info.known ? "known op" : "unknown op " + node.op);
    count(std::string("phase ") + phaseName(node.phase));
    if (info.random) count("random draws");
    if (info.replayForm[0] != '\0') count("replay form");
    if (info.inPlaceOperand >= 0) count("in-place reuse");
    if (node.results.size() > 1) count("several results");
    for (const ValueId result : node.results) {
      if (!result.isValid()) count("undefined result");
    }
    for (const Node::Write& write : node.writes) count(write.whole ? "whole write" : "in place");
    for (const Argument& argument : node.args) {
      if (std::holds_alternative<ValueList>(argument)) count("list of tensors");
      if (std::holds_alternative<ScalarArg>(argument)) count("step scalar");
      const auto* wrapped = std::get_if<WrappedNumberArg>(&argument);
      if (wrapped != nullptr && std::holds_alternative<ScalarId>(wrapped->value)) {
        count("wrapped step scalar");
      }
    }
    for (const Access& access : graph.accesses(id)) {
      if (access.writtenVersion > 2) count("several versions");
    }
  }

  std::map<std::string, int> seen_;
};

TEST(RandomGraph, EveryFeatureTurnsUp) {
  Counter counter;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) counter.see(makeRandomStep(seed));
  for (const char* feature : {"role parameter",
                              "role frozen",
                              "role buffer",
                              "role gradient",
                              "role state",
                              "role master",
                              "role step_counter",
                              "role input",
                              "role activation",
                              "role output",
                              "persistent gradient",
                              "host storage",
                              "strided view",
                              "view with an offset",
                              "bf16",
                              "known op",
                              "phase forward",
                              "phase backward",
                              "phase optimizer",
                              "random draws",
                              "replay form",
                              "in-place reuse",
                              "several results",
                              "undefined result",
                              "whole write",
                              "in place",
                              "list of tensors",
                              "step scalar",
                              "wrapped step scalar",
                              "several versions"}) {
    EXPECT_GE(counter.seen(feature), 10) << feature;
  }
}

TEST(RandomGraph, OnlyOpsOfTheTableAreUsed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const Graph& graph : graphsOf(seed)) {
      for (const Node& node : graph.nodes()) ASSERT_TRUE(lookUpOp(node.op).known) << node.op;
    }
  }
}

// Planning must have something to choose: the widest node needs less than keeping everything.
TEST(RandomGraph, MemoryIsUneven) {
  int uneven = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Graph graph = makeRandomStep(seed);
    const std::vector<Bytes> none(graph.nodes().size());
    const std::vector<int64_t> kept = computeKeepAllBytes(graph, 512, none);
    const int64_t peak = *std::max_element(kept.begin(), kept.end());
    int64_t widest = 0;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      int64_t needed = 0;
      for (const Access& access : graph.accesses(NodeId(i))) {
        needed += roundUp(graph.storage(access.storage).bytes, 512).value();
      }
      widest = std::max(widest, needed);
    }
    if (10 * widest <= 6 * peak) ++uneven;
  }
  EXPECT_GE(uneven, static_cast<int>(kSeeds) / 2);
}

TEST(RandomCosts, CoverEveryNodeAndFollowTheirSeed) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const Graph& graph : graphsOf(seed)) {
      const CostTable table = makeRandomCosts(graph, seed);
      Expected<NodeCosts> costs = resolveCosts(graph, table);
      ASSERT_TRUE(static_cast<bool>(costs)) << describe(costs.takeError());
      Expected<NodeCosts> again = resolveCosts(graph, makeRandomCosts(graph, seed));
      ASSERT_TRUE(static_cast<bool>(again));
      for (size_t i = 0; i < costs->nodes.size(); ++i) {
        EXPECT_GT(costs->time(NodeId(i)), Nanoseconds(0));
        EXPECT_EQ(costs->time(NodeId(i)), again->time(NodeId(i)));
      }
    }
  }
}

}  // namespace
}  // namespace stowage::tests
