// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/order_by_layer.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "passes/manage/pass_options.h"
#include "passes/normalise/graph_edit.h"
#include "passes/normalise/micro_batches.h"

namespace stowage::passes {

namespace {

/// Stretches by node, as places and cuts want them. What follows the last micro-batch has one of
/// its own.
std::vector<int64_t> wantedStretches(const ir::Graph& graph, const MicroBatches& batches,
                                     llvm::ArrayRef<int64_t> places, llvm::ArrayRef<int64_t> cuts) {
  const auto last = static_cast<int64_t>(cuts.size());
  std::vector<int64_t> stretches;
  for (size_t i = 0; i < places.size(); ++i) {
    const bool isAfter = i > batches.reads.back().node.index();
    stretches.push_back(isAfter && ir::updatesModel(graph.nodes()[i].phase)
                            ? last + 1
                            : std::upper_bound(cuts.begin(), cuts.end(), places[i]) - cuts.begin());
  }
  return stretches;
}

/// Between two micro-batches lie the end of one and the begin of the next. A node goes with the
/// first node that depends on it. Backwards, since what depends on a node comes after it.
class BeginSearch {
 public:
  BeginSearch(const ir::Graph& graph, std::vector<int64_t>& stretches)
      : graph_(graph), stretches_(stretches), next_(graph.storages().size()) {}

  void run(llvm::ArrayRef<int64_t> places, int64_t lastGap) {
    for (size_t i = stretches_.size(); i-- > 0;) {
      if (places[i] == lastGap) stretches_[i] = std::min(stretches_[i], latest(ir::NodeId(i)));
      remember(ir::NodeId(i));
    }
  }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  struct NextAccess {
    int64_t writer = kNever;
    int64_t reader = kNever;  // before that writer
  };

  int64_t latest(ir::NodeId id) const {
    int64_t stretch = keepsOrder(graph_.node(id)) ? nextOrdered_ : kNever;
    for (const ir::Access& access : graph_.accesses(id)) {
      const NextAccess& next = next_[access.storage.index()];
      stretch = std::min(stretch, next.writer);
      if (access.writes()) stretch = std::min(stretch, next.reader);
    }
    return stretch;
  }

  void remember(ir::NodeId id) {
    const int64_t stretch = stretches_[id.index()];
    if (keepsOrder(graph_.node(id))) nextOrdered_ = stretch;
    for (const ir::Access& access : graph_.accesses(id)) {
      NextAccess& next = next_[access.storage.index()];
      if (access.writes()) next = {.writer = stretch, .reader = kNever};
      if (access.reads()) next.reader = std::min(next.reader, stretch);
    }
  }

  const ir::Graph& graph_;
  std::vector<int64_t>& stretches_;
  int64_t nextOrdered_ = kNever;
  std::vector<NextAccess> next_;
};

/// Moves each node to the stretch of the last node that it depends on, if that is a later one.
class DelaySearch {
 public:
  DelaySearch(const ir::Graph& graph, std::vector<int64_t>& stretches)
      : graph_(graph), stretches_(stretches), last_(graph.storages().size()) {}

  void run() {
    for (size_t i = 0; i < stretches_.size(); ++i) {
      stretches_[i] = std::max(stretches_[i], earliest(ir::NodeId(i)));
      remember(ir::NodeId(i));
    }
  }

 private:
  struct LastAccess {
    int64_t writer = 0;
    int64_t reader = 0;  // since that writer
  };

  int64_t earliest(ir::NodeId id) const {
    int64_t stretch = keepsOrder(graph_.node(id)) ? lastOrdered_ : 0;
    for (const ir::Access& access : graph_.accesses(id)) {
      const LastAccess& last = last_[access.storage.index()];
      stretch = std::max(stretch, last.writer);
      if (access.writes()) stretch = std::max(stretch, last.reader);
    }
    return stretch;
  }

  void remember(ir::NodeId id) {
    const int64_t stretch = stretches_[id.index()];
    if (keepsOrder(graph_.node(id))) lastOrdered_ = stretch;
    for (const ir::Access& access : graph_.accesses(id)) {
      LastAccess& last = last_[access.storage.index()];
      if (access.writes()) {
        last = {.writer = stretch, .reader = 0};
      } else {
        last.reader = std::max(last.reader, stretch);
      }
    }
  }

  const ir::Graph& graph_;
  std::vector<int64_t>& stretches_;
  int64_t lastOrdered_ = 0;
  std::vector<LastAccess> last_;
};

/// Bytes of weights that are read, by all micro-batches; and those read in a later stretch than
/// wanted.
struct ReadBytes {
  Bytes all;
  Bytes delayed;
};

ReadBytes countDelayed(const ir::Graph& graph, const MicroBatches& batches,
                       llvm::ArrayRef<int64_t> wanted, llvm::ArrayRef<int64_t> stretches) {
  ReadBytes bytes;
  for (const MicroBatches::Read& read : batches.reads) {
    const size_t node = read.node.index();
    for (const ir::StorageId storage : read.storages) {
      bytes.all += graph.storage(storage).bytes;
      if (stretches[node] > wanted[node]) bytes.delayed += graph.storage(storage).bytes;
    }
  }
  return bytes;
}

std::vector<ir::NodeId> makeOrder(llvm::ArrayRef<int64_t> stretches) {
  std::vector<ir::NodeId> order;
  for (size_t i = 0; i < stretches.size(); ++i) order.push_back(ir::NodeId(i));
  std::stable_sort(order.begin(), order.end(), [&](ir::NodeId a, ir::NodeId b) {
    return stretches[a.index()] < stretches[b.index()];
  });
  return order;
}

}  // namespace

ir::Expected<std::unique_ptr<Pass>> OrderByLayer::parse(llvm::StringRef text) {
  OrderByLayerOptions options;
  OptionReader reader("order-by-layer", text);
  options.stretchBytes = reader.readSize("stretch-bytes", options.stretchBytes);
  if (ir::Error error = reader.finish()) return error;
  return std::make_unique<OrderByLayer>(options);
}

std::string OrderByLayer::options() const {
  if (options_.stretchBytes == OrderByLayerOptions().stretchBytes) return "";
  return "stretch-bytes=" + printSize(options_.stretchBytes);
}

ir::Expected<PassReport> OrderByLayer::run(PassState& state) const {
  const ir::Graph& graph = state.graph;
  const MicroBatches batches = findMicroBatches(graph);
  PassReport report{.counters = {{"micro_batches", batches.count}}};
  if (batches.count < 2) return report;
  const std::vector<int64_t> places = findPlaces(graph, batches);
  const std::vector<int64_t> cuts = findCuts(graph, batches, places, options_.stretchBytes);
  std::vector<int64_t> stretches = wantedStretches(graph, batches, places, cuts);
  BeginSearch(graph, stretches).run(places, 2 * batches.readsEach());
  const std::vector<int64_t> wanted = stretches;
  DelaySearch(graph, stretches).run();
  const ReadBytes bytes = countDelayed(graph, batches, wanted, stretches);
  report.counters.insert(report.counters.end(),
                         {{"stretches", static_cast<int64_t>(cuts.size()) + 1},
                          {"read_bytes", bytes.all.value()},
                          {"delayed_bytes", bytes.delayed.value()}});
  // Where dropout keeps forward in order, backward still gains. What is held back more gains
  // little.
  if (2 * bytes.delayed.value() > bytes.all.value()) return report;
  const std::vector<ir::NodeId> order = makeOrder(stretches);
  report.changed = !std::is_sorted(order.begin(), order.end());
  if (report.changed) state.graph = withOrder(graph, order);
  return report;
}

}  // namespace stowage::passes
