// SPDX-License-Identifier: Apache-2.0
//
// Passes on text: a graph, and possibly a schedule, in; text out. What stowage-opt and the text
// tests run. Besides the passes and lists of passes/pipeline.h a pipeline may hold
//   evaluate{prefetch-limit=64KiB}
//                           decisions to timetable, at costs that add up by hand
//                           (passes/lowering/evaluate_decisions.h)
//   print                   the IR as it is at this point
//   report                  counters and remarks of the passes so far, as comments
//   verify                  checks the graph, or proves the schedule, and says so as a comment
// Without a `print` or `report` the result is the IR at the end. The target is always the same
// small CPU with 512-byte alignment. A schedule block without commands only gives decisions; one
// with commands and with empty fingerprints (and ops=0) is taken to be of its graph.
#ifndef STOWAGE_PASSES_PIPELINE_TEXT_H_
#define STOWAGE_PASSES_PIPELINE_TEXT_H_

#include <llvm/ADT/StringRef.h>

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "passes/manage/pass_manager.h"

namespace stowage::passes {

/// Errors: kParse for the text, kInvalidArgument for the pipeline, what passes and checks give.
ir::Expected<std::string> runPipelineOnText(llvm::StringRef pipeline, llvm::StringRef irText,
                                            std::string fileName, PassObserver* observer = nullptr);

/// What a pipeline may hold: names of passes and lists, and the four above last.
std::vector<std::string> textPassNames();

/// The IR of a state as text.
std::string toText(const PassState& state);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_PIPELINE_TEXT_H_
