// SPDX-License-Identifier: Apache-2.0
//
// Each invariant of a graph, broken alone. What the text form can say is written as text; what it
// cannot is built.

#include "ir/graph/check_graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/text/parser.h"

namespace stowage::ir {
namespace {

constexpr const char* kPrefix =
    "graph @g version=1 {\n"
    "  scalar #lr : f64 = 0.5\n"
    "  input %x : f32[4]\n"
    "  parameter %w : f32[4]\n"
    "  frozen %f : f32[4]\n";

struct Case {
  const char* body;
  const char* note;  // "" when the body is fine
};

class CheckText : public testing::TestWithParam<Case> {};

TEST_P(CheckText, NamesTheBrokenInvariant) {
  Expected<Graph> graph = parseGraph(std::string(kPrefix) + GetParam().body + "}\n");
  if (GetParam().note[0] == '\0') {
    EXPECT_TRUE(static_cast<bool>(graph)) << describe(graph.takeError());
    return;
  }
  ASSERT_FALSE(static_cast<bool>(graph));
  const PlanError error = takePayload(graph.takeError());
  EXPECT_EQ(error.code(), ErrorCode::kInvalidIr);
  EXPECT_EQ(error.text(), "graph @g breaks 1 invariant");
  ASSERT_EQ(error.notes().size(), 1u);
  EXPECT_EQ(error.notes()[0], GetParam().note);
}

INSTANTIATE_TEST_SUITE_P(
    Invariants, CheckText,
    testing::Values(
        Case{"  %h : f32[4] = aten.a.b(%x)\n  aten.a.b(inout %h, out %w, [none, %f])\n", ""},
        Case{"  view %v of %x : f32[2] offset=2\n", ""},
        Case{"  view %v of %x : f32[3] offset=2\n",
             "%v ends at byte 20 of storage \"x\", which has 16"},
        Case{"  view %v of %x : f32[2,2] strides=[4,1]\n",
             "%v ends at byte 24 of storage \"x\", which has 16"},
        Case{"  input %y \"x\" : f32[4]\n", "two storages are called \"x\""},
        Case{"  input %y \"\" : f32[4]\n", "storage 3 has no name"},
        Case{"  input %y persistent : f32[4]\n",
             "storage \"y\" of role input persists from step to step"},
        Case{"  input %y output : f32[4]\n  aten.a.b(inout %y)\n",
             "storage \"y\" of role input is delivered after the step"},
        Case{"  state %y transient : f32[4]\n",
             "storage \"y\" of role state does not persist from step to step"},
        Case{"  gradient %y persistent : f32[4]\n  buffer %z transient : f32[4]\n", ""},
        Case{"  input %y host : f32[1024]\n", ""},
        Case{"  input %y host : f32[1025]\n",
             "storage \"y\" stays on the host with 4100 bytes, expected at most 4096"},
        Case{"  activation %h : f32[4]\n  aten.a.b(%h)\n",
             "n0 aten.a.b (forward) reads storage \"h\" before anything wrote it"},
        Case{"  activation %h : f32[4]\n  aten.a.b(inout %h)\n",
             "n0 aten.a.b (forward) reads storage \"h\" before anything wrote it"},
        Case{"  activation %h : f32[4]\n  aten.a.b(out %h)\n", ""},
        Case{"  activation %h : f32[4]\n  %h = aten.a.b(%x)\n", ""},
        Case{"  view %v of %w : f32[2]\n  aten.a.b(out %v)\n",
             "n0 aten.a.b (forward) writes storage \"w\" whole through %v, which does not cover "
             "it"},
        Case{"  view %v of %w : f32[2,4] strides=[0,1]\n  aten.a.b(out %v)\n",
             "n0 aten.a.b (forward) writes storage \"w\" whole through %v, which does not cover "
             "it"},
        Case{"  view %v of %w : f32[2,2] strides=[1,2]\n  aten.a.b(out %v)\n", ""},
        Case{"  gradient %e : f32[0]\n  aten.a.b(out %e)\n", ""},
        Case{"  gradient %e : f32[4] bytes=20\n  aten.a.b(out %e)\n",
             "n0 aten.a.b (forward) writes storage \"e\" whole through %e, which does not cover "
             "it"},
        Case{"  aten.a.b(inout %f)\n", "n0 aten.a.b (forward) writes frozen storage \"f\""},
        Case{"  %w = aten.a.b(%x)\n",
             "n0 aten.a.b (forward) makes storage \"w\" as a new result, but it holds bytes when "
             "the step begins"},
        Case{"  %x = aten.a.b()\n",
             "n0 aten.a.b (forward) makes storage \"x\" as a new result, but it holds bytes when "
             "the step begins"},
        Case{"  %h : f32[4] = aten.a.b(%x)\nbackward \"m\":\n  %h = aten.a.b(%x)\n",
             "n1 aten.a.b (m, backward) makes storage \"h\" as a new result, but an earlier node "
             "wrote it"},
        Case{"  parameter %p output : f32[4]\n",
             "storage \"p\" is delivered after the step, but no node writes it"}));

// A graph with one input value and one node that reads it, changed before it is checked.
struct Parts {
  std::string graphName = "g";
  Storage storage{.name = "x", .bytes = Bytes(16), .role = Role::kInput};
  Value value{.name = "x", .storage = StorageId(0), .type = {.sizes = {4}, .strides = {1}}};
  StepScalar scalar{.name = "lr"};
  Node node{.op = "aten.a.b", .args = {ValueArg{ValueId(0)}}};
};

std::string notesAfter(const std::function<void(Parts&)>& change) {
  Parts parts;
  change(parts);
  GraphBuilder builder(parts.graphName);
  builder.addStorage(parts.storage);
  builder.addValue(parts.value);
  builder.addScalar(parts.scalar);
  builder.addNode(parts.node);
  Error error = checkGraph(std::move(builder).finish());
  if (!error) return "";
  std::string text;
  const PlanError payload = takePayload(std::move(error));
  for (const std::string& note : payload.notes()) text += note + "\n";
  return text;
}

TEST(CheckGraph, ReferencesToNothingAreFound) {
  const char* kBadArgument =
      "n0 aten.a.b (forward) has an argument that refers to nothing or has no spelling\n";
  EXPECT_EQ(notesAfter([](Parts&) {}), "");
  const std::vector<Argument> bad = {ValueArg{},
                                     ValueArg{ValueId(1)},
                                     ValueList{{ValueId(1)}},
                                     ScalarArg{},
                                     ScalarArg{ScalarId(1)},
                                     WrappedNumberArg{.value = ScalarId(1)},
                                     NumberList{ScalarArg{ScalarId(1)}},
                                     EnumArg{"color", "red"},
                                     EnumArg{"device", "cuda:"},
                                     EnumArg{"device", "cuda 0"}};
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(notesAfter([&](Parts& parts) { parts.node.args.push_back(bad[i]); }), kBadArgument)
        << "argument " << i;
  }
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.node.results = {ValueId(1)}; }),
            "n0 aten.a.b (forward) has a result that does not exist\n");
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.node.scope = ScopeId(0); }),
            "n0 aten.a.b has a scope that does not exist\n");
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.value.storage = StorageId(3); }),
            "storage \"x\" has no value\n%x views a storage that does not exist\n");
}

TEST(CheckGraph, WritesNameArgumentsOnce) {
  EXPECT_EQ(notesAfter([](Parts& parts) {
              parts.node.args.clear();
              parts.node.writes = {{.value = ValueId(0)}};
            }),
            "n0 aten.a.b (forward) writes a value that is none of its arguments\n");
  EXPECT_EQ(notesAfter([](Parts& parts) {
              parts.node.writes = {{.value = ValueId(0)}, {.value = ValueId(0), .whole = true}};
            }),
            "n0 aten.a.b (forward) lists the write of %x twice\n");
}

TEST(CheckGraph, NamesHaveASpelling) {
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.graphName = "a b"; }),
            "the graph's name 'a b' is no name\n");
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.value.name = "a-b"; }),
            "value '%a-b' has no valid name\n");
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.scalar.name = ""; }),
            "step scalar '#' has no valid name\n");
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.node.op = "relu"; }),
            "n0 relu (forward): expected an op like aten.mm.default\n");
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.node.op = "aten.re lu"; }),
            "n0 aten.re lu (forward): expected an op like aten.mm.default\n");
}

TEST(CheckGraph, TypesAndSizesAreWellFormed) {
  constexpr const char* kMalformed =
      "%x has a malformed type (strides and sizes that differ in number, something negative, or an "
      "overflow)\n";
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.value.type.strides = {}; }), kMalformed);
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.value.type.sizes = {-4}; }), kMalformed);
  EXPECT_EQ(notesAfter([](Parts& parts) { parts.storage.home = Space::kDisk; }),
            "storage \"x\" has its home on disk, expected device or host\n");
  EXPECT_EQ(notesAfter([](Parts& parts) {
              parts.storage.bytes = Bytes(-1);
              parts.value.type = {.sizes = {0}, .strides = {1}};
            }),
            "storage \"x\" has a negative size\n%x ends at byte 0 of storage \"x\", which has "
            "-1\n");
  EXPECT_EQ(notesAfter([](Parts& parts) {
              parts.storage.role = Role::kOutput;
              parts.node.args.clear();
              parts.node.results = {ValueId(0)};
            }),
            "storage \"x\" of role output is not delivered after the step\n");
}

TEST(CheckGraph, ReportsAllViolationsOfAGroup) {
  EXPECT_EQ(notesAfter([](Parts& parts) {
              parts.graphName = "";
              parts.scalar.name = "?";
              parts.storage.name = "";
              parts.value.name = "";
            }),
            "the graph's name '' is no name\n"
            "step scalar '#?' has no valid name\n"
            "storage 0 has no name\n"
            "value '%' has no valid name\n");
}

}  // namespace
}  // namespace stowage::ir
