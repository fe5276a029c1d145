// SPDX-License-Identifier: Apache-2.0
//
// A look at the module in the middle of a training, which changes nothing of it.
#include <llvm/ADT/ScopeExit.h>

#include <utility>

#include "runtime/runner/runner_impl.h"
#include "runtime/torch/rng_keeper.h"

namespace stowage::runtime {

ir::Error Runner::Impl::checkNotRead() const {
  if (notPutBack) return ir::makeError(*notPutBack);
  if (!reading) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "found a call of the runner inside of read(), expected it afterwards: the "
                       "module has copies meanwhile");
}

ir::Error Runner::Impl::checkOpen() const { return over ? overError() : checkNotRead(); }

ir::Error Runner::beginRead() {
  if (ir::Error error = impl_->checkOpen()) return error;
  if (ir::Error error = impl_->enter()) return error;
  if (ir::Error error = impl_->executor->finish()) return error;
  ir::Expected<std::vector<uint8_t>> generator = readGeneratorState(impl_->generatorDevice());
  if (!generator) return generator.takeError();
  ir::Expected<std::unique_ptr<LentState>> lent =
      impl_->captured.lend([&](ir::StorageId captured) { return impl_->capturedValue(captured); });
  if (!lent) return lent.takeError();
  impl_->reading.emplace();
  impl_->reading->lent = std::move(*lent);
  impl_->reading->generator = std::move(*generator);
  return ir::success();
}

ir::Error Runner::endRead() {
  if (impl_->reading) {
    ir::Error error = impl_->reading->lent->takeBack();
    if (!error) error = writeGeneratorState(impl_->generatorDevice(), impl_->reading->generator);
    if (error) impl_->notPutBack = ir::takePayload(std::move(error));
    impl_->reading.reset();
  }
  return impl_->checkNotRead();
}

ir::Error Runner::read(llvm::function_ref<void()> look) {
  if (ir::Error error = beginRead()) return error;
  {
    // Also when `look` throws.
    const auto putBack = llvm::make_scope_exit([&] { llvm::consumeError(endRead()); });
    look();
  }
  return impl_->checkNotRead();
}

ir::Expected<at::Tensor> Runner::value(ir::StorageId captured) {
  if (impl_->over) return impl_->overError();
  if (impl_->notPutBack) return ir::makeError(*impl_->notPutBack);
  if (ir::Error error = impl_->enter()) return error;
  if (ir::Error error = impl_->executor->finish()) return error;
  return impl_->capturedValue(captured);
}

ir::Error Runner::putValue(ir::StorageId captured, const at::Tensor& bytes) {
  if (ir::Error error = impl_->checkOpen()) return error;
  if (ir::Error error = impl_->enter()) return error;
  if (ir::Error error = impl_->executor->finish()) return error;
  if (impl_->shared) {
    ir::Expected<bool> isPut =
        impl_->shared->put(captured, {bytes.data_ptr<uint8_t>(), bytes.nbytes()});
    if (!isPut) return isPut.takeError();
    if (*isPut) return ir::success();
  }
  const ir::StorageId planned = impl_->match.plannedOf(captured);
  if (!planned.isValid()) {
    impl_->givenUnused.insert_or_assign(captured, bytes.clone());
    return ir::success();
  }
  return impl_->putState(planned, {bytes.data_ptr<uint8_t>(), bytes.nbytes()});
}

}  // namespace stowage::runtime
