// SPDX-License-Identifier: Apache-2.0
//
// Watches libtorch's default random number generators while a step is traced. Recorded ops draw
// nothing, so the generator is moved on at each of them, as the real step would; whatever else
// moves it (manual_seed, set_state, a draw on the host) is something that a plan does not do.
// A step on tensors without memory -> "somebody else set the state" at the first op after it. The
// generator ends as it began.
// Limit: beside running steps, whose draws move the generator too, only the CPU's seed is compared
// (SeedWatch; manual_seed sets it for every device): not seen is manual_seed with the seed that it
// has already, or another state of a GPU's generator alone.
#ifndef STOWAGE_RUNTIME_CAPTURE_DISPATCH_GENERATOR_WATCH_H_
#define STOWAGE_RUNTIME_CAPTURE_DISPATCH_GENERATOR_WATCH_H_

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <vector>

namespace stowage::runtime {

/// The seed of the CPU's default generator. A GPU's may not be asked while a graph is recorded.
class SeedWatch {
 public:
  SeedWatch() : seed_(seedNow()) {}
  bool isUntouched() const { return seed_ == seedNow(); }

 private:
  static uint64_t seedNow();

  uint64_t seed_;
};

class GeneratorWatch {
 public:
  explicit GeneratorWatch(c10::DeviceType device);
  ~GeneratorWatch();
  GeneratorWatch(const GeneratorWatch&) = delete;
  GeneratorWatch& operator=(const GeneratorWatch&) = delete;

  /// A recorded op draws.
  void moveOn();
  /// Did nobody move or set the generator but `moveOn`?
  bool isUntouched() const;

 private:
  c10::DeviceType device_;
  SeedWatch seed_;
  std::vector<uint8_t> first_, expected_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_DISPATCH_GENERATOR_WATCH_H_
