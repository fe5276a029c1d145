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
  if (!isRead) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "found a call of the runner inside of read(), expected it afterwards: the "
                       "module has copies meanwhile");
}

ir::Error Runner::Impl::checkOpen() const { return over ? overError() : checkNotRead(); }

ir::Error Runner::read(llvm::function_ref<void()> look) {
  if (ir::Error error = impl_->checkOpen()) return error;
  if (ir::Error error = impl_->executor->finish()) return error;
  const c10::DeviceType drawsOn = impl_->generatorDevice();
  ir::Expected<std::vector<uint8_t>> generator = readGeneratorState(drawsOn);
  if (!generator) return generator.takeError();
  ir::Expected<std::unique_ptr<LentState>> lent =
      impl_->captured.lend([&](ir::StorageId captured) { return impl_->capturedValue(captured); });
  if (!lent) return lent.takeError();
  {
    const RngRestore ofCpu;  // also of a step on a GPU: `look` has the module on the CPU
    impl_->isRead = true;
    // Also when `look` throws.
    const auto putBack = llvm::make_scope_exit([&] {
      impl_->isRead = false;
      ir::Error error = (*lent)->takeBack();
      if (!error) error = writeGeneratorState(drawsOn, *generator);
      if (error) impl_->notPutBack = ir::takePayload(std::move(error));
    });
    look();
  }
  return impl_->checkNotRead();
}

}  // namespace stowage::runtime
