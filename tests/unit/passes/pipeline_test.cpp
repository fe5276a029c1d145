// SPDX-License-Identifier: Apache-2.0
//
// Pipelines as text, options with units, and the two lists.

#include "passes/pipeline.h"

#include <gtest/gtest.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>

#include <utility>

#include "passes/manage/pass_manager.h"
#include "passes/manage/pass_options.h"
#include "passes/pipeline_text.h"

namespace stowage::passes {
namespace {

using namespace stowage::literals;  // NOLINT: for sizes

std::string roundTrip(const std::string& text) {
  ir::Expected<PassList> list = parsePipeline(text);
  if (!list) return ir::describe(list.takeError());
  return PassManager(std::move(*list)).text();
}

TEST(Pipeline, TextReadsBack) {
  for (const char* text :
       {"fold-views,drop-dead", "split-list-ops{bucket-bytes=1MiB},hoist-updates",
        "insert-recompute{graph=whole},insert-copies,assign-offsets{budget=24GiB},insert-waits,"
        "thin-waits"}) {
    EXPECT_EQ(roundTrip(text), text);
  }
}

TEST(Pipeline, OptionsAtTheirDefaultsAreNotPrinted) {
  EXPECT_EQ(roundTrip(" split-list-ops{ bucket-bytes = 64MiB } , drop-dead "),
            "split-list-ops,drop-dead");
}

TEST(Pipeline, NamesOfListsStandForTheirPasses) {
  EXPECT_EQ(roundTrip("normalise{bucket-bytes=1KiB}"),
            "fold-views,drop-dead,split-list-ops{bucket-bytes=1KiB},sink-producers,hoist-updates");
  EXPECT_EQ(roundTrip("lower{budget=1GiB}"),
            "insert-recompute,insert-copies,assign-offsets{budget=1GiB},insert-waits,thin-waits");
}

TEST(Pipeline, TheProgramsOrderIsKeptOnRequest) {
  EXPECT_EQ(PassManager(makeNormalisingPasses({.reorder = false})).text(),
            "fold-views,drop-dead,split-list-ops");
}

TEST(Pipeline, EveryNamedPassCanBeMade) {
  for (const std::string& name : allPassNames()) {
    ir::Expected<PassList> list = makePasses({.name = name, .options = ""});
    ASSERT_TRUE(static_cast<bool>(list)) << ir::describe(list.takeError());
    EXPECT_FALSE(list->empty());
    for (const auto& pass : *list)
      EXPECT_TRUE(name == "normalise" || name == "lower" || pass->name() == name);
  }
}

TEST(Pipeline, AnUnknownPassIsAnsweredWithAllThatTheTextTakes) {
  const std::string graph = "graph @g version=1 {\n}\n";
  const std::vector<std::string> names = textPassNames();
  ir::Expected<std::string> result = runPipelineOnText("unknown", graph, "g.stow");
  ASSERT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(ir::describe(result.takeError()),
            "unknown pass 'unknown', expected one of: " + llvm::join(names, ", "));
  for (const char* name : {"lower", "evaluate", "print", "report", "verify"}) {
    EXPECT_TRUE(llvm::is_contained(names, name)) << name;
  }
  for (const std::string& name : names) {
    ir::Expected<std::string> known = runPipelineOnText(name, graph, "g.stow");
    const std::string error = known ? "" : ir::describe(known.takeError());
    EXPECT_EQ(error.find("unknown pass"), std::string::npos) << error;
  }
}

TEST(Pipeline, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(roundTrip("drop-dead,,hoist-updates"),
            "pipeline, character 11: expected the name of a pass");
  EXPECT_EQ(roundTrip("drop-dead,"), "pipeline, character 11: expected the name of a pass");
  EXPECT_EQ(roundTrip("drop-dead{a"), "pipeline, character 11: expected '}'");
  EXPECT_EQ(roundTrip("drop-dead{}x"), "pipeline, character 12: expected ','");
  EXPECT_EQ(roundTrip("drop-dead{fast=true}"), "drop-dead: unknown option 'fast'");
  EXPECT_EQ(roundTrip("split-list-ops{bucket-bytes=1MiB,bucket-bytes=2MiB}"),
            "split-list-ops: option 'bucket-bytes' is given twice");
  EXPECT_EQ(roundTrip("split-list-ops{,}"), "split-list-ops: found an empty option");
}

TEST(PassOptions, SizesNeedAUnit) {
  EXPECT_EQ(parseSize("64MiB"), 64_MiB);
  EXPECT_EQ(parseSize("0B"), 0_B);
  EXPECT_EQ(parseSize("3TiB"), 3072_GiB);
  for (const char* text : {"", "64", "MiB", "-1B", "1.5GiB", "64 MiB", "64mib", "64MB", "1MiBx",
                           "9999999999999999999B", "9223372036854775807KiB"}) {
    EXPECT_EQ(parseSize(text), std::nullopt) << text;
  }
}

TEST(PassOptions, SizesReadBack) {
  for (const Bytes size : {0_B, 1_B, 1023_B, 1_KiB, 1536_B, 64_MiB, 3_GiB, 2048_GiB}) {
    EXPECT_EQ(parseSize(printSize(size)), size) << printSize(size);
  }
  EXPECT_EQ(printSize(2048_GiB), "2TiB");
  EXPECT_EQ(printSize(1536_B), "1536B");
}

constexpr const char* kGraph =
    "graph @g version=1 {\n"
    "  input %x : f32[4]\n"
    "  %l output : f32[4] = aten.neg.default(%x)\n"
    "}\n";

std::string runText(const char* pipeline) {
  ir::Expected<std::string> text = runPipelineOnText(pipeline, kGraph, "file");
  return text ? *text : ir::describe(text.takeError());
}

TEST(PipelineText, WithoutAViewerTheResultIsTheIrAtTheEnd) {
  EXPECT_EQ(runText(""), kGraph);
  EXPECT_EQ(runText("drop-dead"), kGraph);
  EXPECT_EQ(runText("verify"), std::string("// verified: graph\n") + kGraph);
}

TEST(PipelineText, ViewersPrintWhereTheyStand) {
  EXPECT_EQ(runText("print,drop-dead,report"),
            std::string(kGraph) + "// drop-dead: unchanged nodes=0 storages=0 values=0\n");
}

TEST(PipelineText, ReproducersHoldIrAndPipeline) {
  ir::Expected<std::string> text = runPipelineOnText(
      "drop-dead,evaluate,insert-recompute,insert-recompute,insert-waits", kGraph, "file");
  ASSERT_FALSE(static_cast<bool>(text));
  const ir::PlanError error = ir::takePayload(text.takeError());
  const std::string& reproducer = error.attachment();
  const std::string first = reproducer.substr(0, reproducer.find('\n'));
  EXPECT_EQ(first, "// passes: evaluate,insert-recompute,insert-recompute,insert-waits");
  // What it says fails in the same way.
  const std::string pipeline = first.substr(std::string(kReproducerPrefix).size());
  ir::Expected<std::string> again = runPipelineOnText(pipeline, reproducer, "file");
  ASSERT_FALSE(static_cast<bool>(again));
  EXPECT_EQ(ir::describe(again.takeError()), ir::describe(ir::makeError(error)));
}

}  // namespace
}  // namespace stowage::passes
