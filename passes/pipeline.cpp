// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <llvm/ADT/StringExtras.h>

#include <iterator>
#include <utility>

#include "passes/lowering/assign_offsets.h"
#include "passes/lowering/insert_copies.h"
#include "passes/lowering/insert_recompute.h"
#include "passes/lowering/insert_waits.h"
#include "passes/lowering/thin_waits.h"
#include "passes/manage/pass_options.h"
#include "passes/normalise/block_rows.h"
#include "passes/normalise/defer_updates.h"
#include "passes/normalise/drop_dead.h"
#include "passes/normalise/fold_views.h"
#include "passes/normalise/hoist_updates.h"
#include "passes/normalise/host_updates.h"
#include "passes/normalise/order_by_layer.h"
#include "passes/normalise/shard_states.h"
#include "passes/normalise/sink_producers.h"
#include "passes/normalise/split_list_ops.h"

namespace stowage::passes {

namespace {

using MadePass = ir::Expected<std::unique_ptr<Pass>>;

/// Makes a pass that has no options.
template <typename PassType>
MadePass makePlain(llvm::StringRef text) {
  auto pass = std::make_unique<PassType>();
  if (ir::Error error = OptionReader(pass->name(), text).finish()) return error;
  return pass;
}

struct NamedPass {
  const char* name;
  MadePass (*make)(llvm::StringRef options);
};

// In the order of the lists.
constexpr NamedPass kPasses[] = {
    {"fold-views", makePlain<FoldViews>},         {"drop-dead", makePlain<DropDead>},
    {"shard-states", ShardStates::parse},         {"split-list-ops", SplitListOps::parse},
    {"sink-producers", makePlain<SinkProducers>}, {"block-rows", BlockRows::parse},
    {"order-by-layer", OrderByLayer::parse},      {"hoist-updates", makePlain<HoistUpdates>},
    {"host-updates", HostUpdates::parse},         {"defer-updates", makePlain<DeferUpdates>},
    {"insert-recompute", InsertRecompute::parse}, {"insert-copies", makePlain<InsertCopies>},
    {"assign-offsets", AssignOffsets::parse},     {"insert-waits", makePlain<InsertWaits>},
    {"thin-waits", makePlain<ThinWaits>},
};

ir::Error syntaxError(llvm::StringRef text, llvm::StringRef at, const std::string& what) {
  const auto column = static_cast<size_t>(at.data() - text.data()) + 1;
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "pipeline, character " + std::to_string(column) + ": " + what);
}

ir::Expected<PassList> makeNormaliseGroup(llvm::StringRef text) {
  NormaliseOptions options;
  OptionReader reader("normalise", text);
  options.bucketBytes = reader.readSize("bucket-bytes", options.bucketBytes);
  if (ir::Error error = reader.finish()) return error;
  return makeNormalisingPasses(options);
}

ir::Expected<PassList> makeLowerGroup(llvm::StringRef text) {
  LowerOptions options;
  OptionReader reader("lower", text);
  options.budget = reader.readSize("budget", options.budget);
  if (ir::Error error = reader.finish()) return error;
  return makeLoweringPasses(options);
}

}  // namespace

PassList makeNormalisingPasses(NormaliseOptions options) {
  PassList list;
  // Views first: every later pass counts nodes and storages, and a view is neither.
  list.push_back(std::make_unique<FoldViews>());

  // Dead nodes next, while a dead list op is still one node. Before the order is touched, since a
  // dead reader would hold an update back.
  list.push_back(std::make_unique<DropDead>());

  // Lists into buckets before costing, so that costs are measured for what will run, and before
  // hoisting: a list over all parameters waits for the last gradient, a bucket for its own.
  list.push_back(std::make_unique<SplitListOps>(SplitListOpsOptions{options.bucketBytes}));
  if (!options.reorder) return list;

  // Producers down before updates up: an update may pass a node that has sunk, while a producer
  // that had to make room for an update would have nowhere to sink.
  list.push_back(std::make_unique<SinkProducers>());

  // Last: it needs the final set of nodes, and every later move could undo it.
  list.push_back(std::make_unique<HoistUpdates>());
  return list;
}

PassList makeLoweringPasses(LowerOptions options) {
  PassList list;
  // Originals and recomputes first: everything else refers to the order of the compute stream.
  list.push_back(std::make_unique<InsertRecompute>(InsertRecomputeOptions{options.graphMode}));

  // Copies second: with them every version that is read exists, which is checked before bytes and
  // time come in.
  list.push_back(std::make_unique<InsertCopies>());

  // Offsets before waits: reuse of bytes is a reason to wait, so waits cannot be complete earlier.
  list.push_back(std::make_unique<AssignOffsets>(AssignOffsetsOptions{options.budget}));

  // All waits, then the fewest: the first is easy to see to be safe, the second only removes what
  // is implied. Nothing may come between or after them that adds a command or moves bytes.
  list.push_back(std::make_unique<InsertWaits>());
  list.push_back(std::make_unique<ThinWaits>());
  return list;
}

ir::Expected<std::vector<PipelineItem>> splitPipeline(llvm::StringRef text) {
  std::vector<PipelineItem> items;
  llvm::StringRef rest = text.trim();
  while (!rest.empty()) {
    const llvm::StringRef at = rest;
    PipelineItem item;
    item.name = rest.take_until([](char c) { return c == ',' || c == '{'; }).rtrim().str();
    rest = rest.drop_until([](char c) { return c == ',' || c == '{'; });
    if (item.name.empty()) return syntaxError(text, at, "expected the name of a pass");
    if (rest.consume_front("{")) {
      const size_t close = rest.find('}');
      if (close == llvm::StringRef::npos) return syntaxError(text, rest, "expected '}'");
      item.options = rest.take_front(close).trim().str();
      rest = rest.drop_front(close + 1).ltrim();
    }
    items.push_back(std::move(item));
    if (rest.empty()) break;
    if (!rest.consume_front(",")) return syntaxError(text, rest, "expected ','");
    rest = rest.ltrim();
    if (rest.empty()) return syntaxError(text, rest, "expected the name of a pass");
  }
  return items;
}

ir::Expected<PassList> makePasses(const PipelineItem& item) {
  if (item.name == "normalise") return makeNormaliseGroup(item.options);
  if (item.name == "lower") return makeLowerGroup(item.options);
  for (const NamedPass& known : kPasses) {
    if (item.name != known.name) continue;
    MadePass pass = known.make(item.options);
    if (!pass) return pass.takeError();
    PassList list;
    list.push_back(std::move(*pass));
    return list;
  }
  return refuseUnknownPass(item.name, allPassNames());
}

ir::Expected<PassList> parsePipeline(llvm::StringRef text) {
  ir::Expected<std::vector<PipelineItem>> items = splitPipeline(text);
  if (!items) return items.takeError();
  PassList list;
  for (const PipelineItem& item : *items) {
    ir::Expected<PassList> passes = makePasses(item);
    if (!passes) return passes.takeError();
    list.insert(list.end(), std::make_move_iterator(passes->begin()),
                std::make_move_iterator(passes->end()));
  }
  return list;
}

std::vector<std::string> allPassNames() {
  std::vector<std::string> names;
  for (const NamedPass& known : kPasses) names.emplace_back(known.name);
  names.emplace_back("normalise");
  names.emplace_back("lower");
  return names;
}

ir::Error refuseUnknownPass(const std::string& name, const std::vector<std::string>& known) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "unknown pass '" + name + "', expected one of: " + llvm::join(known, ", "));
}

}  // namespace stowage::passes
