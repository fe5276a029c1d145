// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/c10d_store.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <utility>
#include <vector>

#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {

namespace {

std::string placeOf(const LaunchedRank& launched) {
  return "the launcher's store at '" + launched.store.host + "' port " +
         std::to_string(launched.store.port);
}

/// libtorch's errors of a store are of the environment, whatever their class.
ir::Error ofEnvironment(ir::Error error) {
  const ir::PlanError found = ir::takePayload(std::move(error));
  // The rest of libtorch's text is where it was thrown.
  const std::string text = found.text().substr(0, found.text().find('\n'));
  return ir::makeError(ir::ErrorCode::kEnvironment, text);
}

class C10dStore : public RankStore {
 public:
  C10dStore(c10::intrusive_ptr<c10d::TCPStore> store, const LaunchedRank& launched)
      : store_(std::move(store)), keys_(launched.keys), place_(placeOf(launched)) {}

  ir::Error set(const std::string& key, const std::string& value) override {
    ir::Error error = callTorch(place_, [&] {
      store_->set(keys_ + key, std::vector<uint8_t>(value.begin(), value.end()));
    });
    return error ? ofEnvironment(std::move(error)) : ir::success();
  }

  ir::Expected<std::string> get(const std::string& key) override {
    ir::Expected<std::vector<uint8_t>> value =
        callTorch(place_ + ": key '" + key + "'", [&] { return store_->get(keys_ + key); });
    if (!value) return ofEnvironment(value.takeError());
    return std::string(value->begin(), value->end());
  }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::string keys_;
  std::string place_;
};

class C10dServer : public ServedStore {
 public:
  explicit C10dServer(c10::intrusive_ptr<c10d::TCPStore> store) : store_(std::move(store)) {}
  uint16_t port() const override { return store_->getPort(); }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

ir::Expected<std::unique_ptr<ServedStore>> serveStore() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  ir::Expected<c10::intrusive_ptr<c10d::TCPStore>> store =
      callTorch("a store for ranks on this host",
                [&] { return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options); });
  if (!store) return ofEnvironment(store.takeError());
  return std::make_unique<C10dServer>(std::move(*store));
}

ir::Expected<std::unique_ptr<RankStore>> openStore(const LaunchedRank& launched,
                                                   std::chrono::milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = launched.store.port;
  options.isServer = launched.rank == 0 && !launched.isStoreServed;
  options.waitWorkers = false;
  options.timeout = patience;
  options.multiTenant = true;  // torch.distributed of the same process may serve the port, too
  ir::Expected<c10::intrusive_ptr<c10d::TCPStore>> store = callTorch(placeOf(launched), [&] {
    return c10::make_intrusive<c10d::TCPStore>(launched.store.host, options);
  });
  if (!store) return ofEnvironment(store.takeError());
  return std::make_unique<C10dStore>(std::move(*store), launched);
}

ir::Expected<std::unique_ptr<Communicator>> joinLaunchedRanks(const LaunchedRank& launched,
                                                              RankStore& store,
                                                              const RankPatience& patience) {
  ir::Expected<std::string> host = findAddressTowards(launched.store);
  if (!host) return host.takeError();
  return joinRanks({.rank = launched.rank, .count = launched.count, .host = *host}, store,
                   patience);
}

}  // namespace stowage::runtime
