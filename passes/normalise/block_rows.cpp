// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/block_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "passes/manage/pass_options.h"
#include "passes/normalise/graph_edit.h"
#include "passes/normalise/row_block_writer.h"
#include "passes/normalise/row_regions.h"

namespace stowage::passes {

namespace {

/// Equal blocks but for the last; fewer than asked for where boundaries must be aligned.
std::vector<RowRange> cutRows(const RowRegion& region, int64_t blocks) {
  const int64_t most = (region.rows + blocks - 1) / blocks;
  const int64_t size = (most + region.unit - 1) / region.unit * region.unit;
  std::vector<RowRange> ranges;
  for (int64_t begin = 0; begin < region.rows; begin += size) {
    ranges.push_back({begin, std::min(begin + size, region.rows)});
  }
  return ranges;
}

}  // namespace

ir::Expected<std::unique_ptr<Pass>> BlockRows::parse(llvm::StringRef text) {
  BlockRowsOptions options;
  OptionReader reader("block-rows", text);
  options.blocks = reader.readNumber("blocks", options.blocks);
  if (ir::Error error = reader.finish()) return error;
  if (options.blocks < 1) {
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        "block-rows: found blocks=" + std::to_string(options.blocks) + ", expected at least 1");
  }
  return std::make_unique<BlockRows>(options);
}

std::string BlockRows::options() const {
  if (options_.blocks == BlockRowsOptions().blocks) return "";
  return "blocks=" + std::to_string(options_.blocks);
}

ir::Expected<PassReport> BlockRows::run(PassState& state) const {
  const ir::Graph& graph = state.graph;
  int64_t regions = 0;
  int64_t leftWhole = 0;
  int64_t saved = 0;
  RowBlockWriter writer(graph);
  size_t next = 0;
  const auto copyUntil = [&](size_t end) {
    for (; next < end; ++next) writer.copy(ir::NodeId(next));
  };
  if (options_.blocks > 1) {
    const RowRegions found = findRowRegions(graph);
    leftWhole = found.leftWhole;
    for (const RowRegion& region : found.regions) {
      const std::vector<RowRange> ranges = cutRows(region, options_.blocks);
      if (ranges.size() < 2) {
        ++leftWhole;
        continue;
      }
      copyUntil(region.members.front().node.index());
      writer.write(region, ranges);
      next = region.members.back().node.index() + 1;
      ++regions;
      saved += region.saved.value();
    }
  }
  const auto nodesBefore = static_cast<int64_t>(graph.nodes().size());
  if (regions > 0) {
    copyUntil(graph.nodes().size());
    state.graph = withoutUnused(std::move(writer).finish());
  }
  return PassReport{
      .changed = regions > 0,
      .counters = {{"regions", regions},
                   {"left_whole", leftWhole},
                   {"saved_bytes", saved},
                   {"nodes", static_cast<int64_t>(state.graph.nodes().size()) - nodesBefore}}};
}

}  // namespace stowage::passes
