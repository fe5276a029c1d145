// SPDX-License-Identifier: Apache-2.0
//
// The two lists of passes, and pipelines as text:
// "split-list-ops{bucket-bytes=64MiB},hoist-updates". Besides the passes, text may name the lists:
// "normalise" and "lower{budget=24GiB}".
#ifndef STOWAGE_PASSES_PIPELINE_H_
#define STOWAGE_PASSES_PIPELINE_H_

#include <llvm/ADT/StringRef.h>

#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "passes/manage/pass.h"

namespace stowage::passes {

using PassList = std::vector<std::unique_ptr<Pass>>;

struct NormaliseOptions {
  Bytes bucketBytes{int64_t{64} << 20};  // of split-list-ops
  bool reorder = true;                   // hoisted order; false: the program's order
};

struct LowerOptions {
  Bytes budget;  // the device arena; 0: what the timetable needs
  ir::GraphMode graphMode = ir::GraphMode::kNone;
};

/// From the graph as captured or imported to the graph that is costed, planned and run.
PassList makeNormalisingPasses(NormaliseOptions options = {});
/// From a timetable to a schedule that can be executed.
PassList makeLoweringPasses(LowerOptions options = {});

/// One item of pipeline text.
struct PipelineItem {
  std::string name;
  std::string options;  // without the braces
};

/// Errors: kInvalidArgument with the place in the text.
ir::Expected<std::vector<PipelineItem>> splitPipeline(llvm::StringRef text);

/// The passes of one item: one, or the whole list when it names one. Errors: kInvalidArgument for
/// an unknown name or option.
ir::Expected<PassList> makePasses(const PipelineItem& item);
/// The passes of a whole text.
ir::Expected<PassList> parsePipeline(llvm::StringRef text);

/// Names of all passes in the order of the lists, "normalise" and "lower" last: for messages.
std::vector<std::string> allPassNames();
/// The error for a pass `name` that is not among `known`.
ir::Error refuseUnknownPass(const std::string& name, const std::vector<std::string>& known);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_PIPELINE_H_
