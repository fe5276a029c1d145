// SPDX-License-Identifier: Apache-2.0
//
// The manager: order of checks, what it says of a pass that fails, lies or breaks the graph, and
// the reproducer. Passes made up for the purpose.

#include "passes/manage/pass_manager.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/normalise/graph_edit.h"

namespace stowage::passes {
namespace {

constexpr const char* kGraph =
    "graph @g version=1 {\n"
    "  input %x : f32[4]\n"
    "  %a : f32[4] = aten.neg.default(%x)\n"
    "  %l output : f32[4] = aten.neg.default(%a)\n"
    "}\n";

using Body = std::function<ir::Expected<PassReport>(PassState&)>;

class MadeUp : public Pass {
 public:
  MadeUp(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string name() const override { return name_; }
  std::string options() const override { return name_ == "with-options" ? "size=1KiB" : ""; }
  ir::Expected<PassReport> run(PassState& state) const override { return body_(state); }

 private:
  std::string name_;
  Body body_;
};

ir::Expected<PassReport> doNothing(PassState& /*state*/) { return PassReport{}; }
ir::Expected<PassReport> claimAChange(PassState& /*state*/) { return PassReport{.changed = true}; }
ir::Expected<PassReport> refuse(PassState& /*state*/) {
  return ir::makeError(ir::ErrorCode::kUnsupported, "found something odd");
}

/// Drops the last node: still a legal graph but for the output, which nobody writes.
ir::Graph withoutLastNode(const ir::Graph& graph) {
  std::vector<ir::Node> nodes(graph.nodes().begin(), graph.nodes().end());
  nodes.pop_back();
  return withNodes(graph, std::move(nodes));
}

ir::Expected<PassReport> changeInSecret(PassState& state) {
  ir::GraphBuilder builder(state.graph);
  for (const ir::Node& node : state.graph.nodes()) builder.addNode(node);
  builder.storage(ir::StorageId(1)).name = "other";
  state.graph = std::move(builder).finish();
  return PassReport{};
}

ir::Expected<PassReport> breakTheGraph(PassState& state) {
  std::vector<ir::Node> nodes(state.graph.nodes().begin(), state.graph.nodes().end());
  std::swap(nodes[0], nodes[1]);
  state.graph = withNodes(state.graph, std::move(nodes));
  return PassReport{.changed = true};
}

class Trial {
 public:
  explicit Trial(const std::string& text = kGraph) {
    ir::Expected<ir::Graph> graph = ir::parseGraph(text);
    EXPECT_TRUE(static_cast<bool>(graph));
    state.graph = std::move(*graph);
  }

  Trial& add(std::string name, Body body) {
    list_.push_back(std::make_unique<MadeUp>(std::move(name), std::move(body)));
    return *this;
  }

  /// The error, or one that says that there was none.
  ir::PlanError fail() {
    auto records = PassManager(std::move(list_)).run(state);
    if (records) return {ir::ErrorCode::kInternal, "no error"};
    return ir::takePayload(records.takeError());
  }

  std::vector<PassRecord> succeed(PassObserver* observer = nullptr) {
    auto records = PassManager(std::move(list_)).run(state, observer);
    if (records) return std::move(*records);
    ADD_FAILURE() << ir::describe(records.takeError());
    return {};
  }

  PassState state;

 private:
  std::vector<std::unique_ptr<Pass>> list_;
};

TEST(PassManager, RunsInOrderAndRecords) {
  std::string order;
  Trial trial;
  trial.add("one", [&](PassState& state) {
    order += "1";
    return doNothing(state);
  });
  trial.add("two", [&](PassState& state) {
    order += "2";
    state.graph = withoutLastNode(state.graph);
    ir::GraphBuilder builder(state.graph);
    for (const ir::Node& node : state.graph.nodes()) builder.addNode(node);
    builder.storage(ir::StorageId(2)).output = false;
    builder.storage(ir::StorageId(1)).output = true;
    state.graph = withoutUnused(std::move(builder).finish());
    return PassReport{.changed = true, .counters = {{"nodes", 1}}};
  });
  const std::vector<PassRecord> records = trial.succeed();
  EXPECT_EQ(order, "12");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].pass, "two");
  EXPECT_TRUE(records[1].report.changed);
  EXPECT_EQ(trial.state.graph.nodes().size(), 1U);
}

TEST(PassManager, ThePassThatFailedIsNamedAndTheStateIsThatBeforeIt) {
  Trial trial;
  const ir::PlanError error = trial.add("fine", doNothing).add("with-options", refuse).fail();
  EXPECT_EQ(error.code(), ir::ErrorCode::kUnsupported);
  EXPECT_EQ(error.text(), "with-options failed: found something odd");
  EXPECT_EQ(error.attachment(), std::string("// passes: with-options{size=1KiB}\n") + kGraph);
}

TEST(PassManager, ABrokenGraphIsBlamedOnThePassBeforeTheCheck) {
  Trial trial;
  const ir::PlanError error = trial.add("fine", doNothing).add("breaks", breakTheGraph).fail();
  EXPECT_EQ(error.code(), ir::ErrorCode::kInvalidIr);
  EXPECT_EQ(error.text().rfind("failed after breaks: ", 0), 0U) << error.text();
  EXPECT_FALSE(error.notes().empty());
  EXPECT_EQ(error.attachment(), std::string("// passes: breaks\n") + kGraph);
  EXPECT_EQ(ir::toText(trial.state.graph), kGraph);
}

TEST(PassManager, ABrokenInputIsNoPassesFault) {
  Trial trial;
  ASSERT_TRUE(static_cast<bool>(breakTheGraph(trial.state)));
  const ir::PlanError error = trial.add("fine", doNothing).fail();
  EXPECT_EQ(error.text().rfind("failed before the first pass: ", 0), 0U) << error.text();
}

#ifndef NDEBUG
TEST(PassManager, WhatAPassSaysItChangedIsAudited) {
  EXPECT_EQ(Trial().add("lies", claimAChange).fail().text(),
            "failed after lies: lies reported a change and changed nothing");
  EXPECT_EQ(Trial().add("hides", changeInSecret).fail().text(),
            "failed after hides: hides changed the IR and reported no change");
}
#endif

TEST(PassManager, ObserversSeeEveryPassThatSucceeds) {
  class Watcher : public PassObserver {
   public:
    void beforePass(const Pass& pass, const PassState& /*state*/) override {
      seen += "<" + pass.name();
    }
    void afterPass(const Pass& pass, const PassReport& report, const PassState& state) override {
      seen += ">" + pass.name() + (report.changed ? "!" : "");
      EXPECT_EQ(state.graph.nodes().size(), 2U);
    }
    std::string seen;
  };
  Watcher watcher;
  Trial().add("a", doNothing).add("b", doNothing).succeed(&watcher);
  EXPECT_EQ(watcher.seen, "<a>a<b>b");
}

TEST(PassManager, ItsTextIsThePipeline) {
  std::vector<std::unique_ptr<Pass>> list;
  list.push_back(std::make_unique<MadeUp>("a", doNothing));
  list.push_back(std::make_unique<MadeUp>("with-options", doNothing));
  EXPECT_EQ(PassManager(std::move(list)).text(), "a,with-options{size=1KiB}");
}

}  // namespace
}  // namespace stowage::passes
