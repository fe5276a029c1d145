// SPDX-License-Identifier: Apache-2.0
//
// Several runners on one state: that of the main step, and further ones made with it. They share
// the device, and take turns; a turn begins with moving the state, and the module's tensors become
// those of the runner whose turn it is.
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <utility>

#include "runtime/machine/host_need.h"
#include "runtime/memory/arena_spans.h"
#include "runtime/runner/runner_impl.h"

namespace stowage::runtime {

Runner::Impl& Runner::Impl::home() { return main != nullptr ? *main : *this; }

/// Invalid: of a further step's own.
ir::StorageId Runner::Impl::mainStorageOf(ir::StorageId planned) const {
  const ir::StorageId own = match.capturedOf(planned);
  if (!own.isValid() || main == nullptr) return own;
  return captured.mainStorageOf(own);
}

PlanPlaces Runner::Impl::places() {
  const ir::Graph& graph = plan.graph;
  PlanPlaces places;
  places.at.resize(home().captured.graph().storages().size());
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const ir::StorageId storage(i);
    const ir::Storage& info = graph.storage(storage);
    if (!ir::isState(info)) continue;
    const ir::BoundaryEntry* entry = findBoundary(storage);
    const ir::StorageId shared = mainStorageOf(storage);
    if (entry == nullptr || !shared.isValid()) continue;
    auto& at = places.at[shared.index()].emplace();
    for (const ir::ResidencyId id : entry->at) {
      const ir::Residency& residency = plan.schedule.residency(id);
      at.push_back({residency.space, residency.offset});
    }
  }
  ir::Target blocks = plan.target;
  blocks.alignBytes = ir::kDiskBlock;
  places.spans = {plannedSpans(graph, plan.schedule, plan.target, ir::Space::kDevice),
                  plannedSpans(graph, plan.schedule, plan.target, ir::Space::kHost),
                  plannedSpans(graph, plan.schedule, blocks, ir::Space::kDisk)};
  return places;
}

/// A further runner: the device is the main one's, whose state it works on.
ir::Error Runner::Impl::join(Impl& mainRunner) {
  main = &mainRunner;
  if (ir::Error error = mainRunner.checkOpen()) return error;
  if (ir::Error error = mainRunner.home().enter()) return error;
  if (ir::Error error = mainRunner.executor->finish()) return error;
  device = mainRunner.device;
  const Bytes host = plan.schedule.arenaBytes(ir::Space::kHost);
  const Bytes grown = std::max(host, device->arenaBytes(ir::Space::kHost));
  const HostNeed need = {.host = grown - device->arenaBytes(ir::Space::kHost), .device = {}};
  if (ir::Error error = checkHostMemory(need)) return error;
  return device->growHost(host);
}

ir::Error Runner::Impl::share() {
  if (!main->shared) {
    main->shared.emplace(*device, main->captured.graph(), main->places());
    main->active = main;
  }
  for (size_t i = 0; i < plan.graph.storages().size(); ++i) {
    const ir::StorageId storage(i);
    if (!ir::isState(plan.graph.storage(storage)) || mainStorageOf(storage).isValid()) continue;
    ownConstants.emplace_back(storage, captured.liveValue(match.capturedOf(storage)).cpu());
  }
  ir::Expected<size_t> number = main->shared->add(places());
  if (!number) return number.takeError();
  planNumber = *number;
  main->furthers.push_back(this);
  return ir::success();
}

ir::Error Runner::Impl::enter() {
  Impl& owner = home();
  if (ir::Error error = owner.checkNotReleased()) return error;
  if (!owner.shared || owner.active == this) return ir::success();
  if (ir::Error error = owner.active->executor->finish()) return error;
  owner.active->captured.sleep();
  const auto firstValue = [&](ir::StorageId id) { return owner.firstValueOf(id); };
  if (ir::Error error = owner.shared->enter(planNumber, firstValue)) return error;
  for (const auto& [storage, bytes] : ownConstants) {
    const llvm::ArrayRef<uint8_t> held(bytes.data_ptr<uint8_t>(), bytes.nbytes());
    if (ir::Error error = putState(storage, held)) return error;
  }
  captured.wake();
  owner.active = this;
  return ir::success();
}

ir::Error Runner::takeTurn() {
  if (ir::Error error = impl_->home().checkOpen()) return error;
  return impl_->enter();
}

/// Steps that update are steps of the training; the others are looks at it.
int64_t Runner::Impl::stepsTrained() const {
  const bool trains = llvm::any_of(
      plan.graph.nodes(), [](const ir::Node& node) { return ir::updatesModel(node.phase); });
  return trains ? executor->stepsEnqueued() : 0;
}

void Runner::Impl::part() {
  if (main == nullptr || !llvm::is_contained(main->furthers, this)) return;
  if (main->active == this) {
    if (ir::Error error = main->enter()) main->notPutBack = ir::takePayload(std::move(error));
    main->active = main;
  }
  main->stepsBefore += stepsTrained();
  main->shared->remove(planNumber);
  std::erase(main->furthers, this);
}

}  // namespace stowage::runtime
