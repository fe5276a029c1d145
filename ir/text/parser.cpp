// SPDX-License-Identifier: Apache-2.0
#include "ir/text/parser.h"

#include <limits>
#include <utility>

#include "ir/graph/check_graph.h"
#include "ir/text/graph_parser.h"
#include "ir/text/schedule_parser.h"
#include "ir/text/token_reader.h"

namespace stowage::ir {

namespace {

Error checkGraphAt(const Graph& graph, SourceLocation location) {
  Error broken = checkGraph(graph);
  if (!broken) return success();
  PlanError payload = takePayload(std::move(broken));
  payload.at(std::move(location));
  return makeError(std::move(payload));
}

}  // namespace

Expected<Module> parseModule(llvm::StringRef text, std::string fileName) {
  // Ids and columns are 32 bits wide, and nothing in a text can be more numerous than its bytes.
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return makeError(ErrorCode::kParse, "the text has more than 2 GiB");
  }
  TokenReader reader(text, std::move(fileName));
  const SourceLocation start = reader.locationOf(reader.peek());
  GraphParser graphParser(reader);
  Module module{.graph = graphParser.parse()};
  if (reader.failed()) return reader.takeError();
  if (Error broken = checkGraphAt(module.graph, start)) return broken;
  module.ops = graphParser.takeOps();
  if (!reader.atEnd()) {
    module.schedule = ScheduleParser(reader, module.graph, graphParser.names()).parse();
  }
  if (!reader.failed() && !reader.atEnd()) reader.failExpected("the end of the text");
  if (reader.failed()) return reader.takeError();
  return module;
}

Expected<Module> parseGraphModule(llvm::StringRef text, std::string fileName) {
  Expected<Module> module = parseModule(text, fileName);
  if (!module || !module->schedule) return module;
  return makeError(PlanError(ErrorCode::kParse, "found a schedule, expected a graph and no more")
                       .at({.file = std::move(fileName)}));
}

Expected<Graph> parseGraph(llvm::StringRef text, std::string fileName) {
  Expected<Module> module = parseGraphModule(text, std::move(fileName));
  if (!module) return module.takeError();
  return std::move(module->graph);
}

}  // namespace stowage::ir
