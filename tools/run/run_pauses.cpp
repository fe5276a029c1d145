// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_pauses.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace stowage::tools {

namespace {

/// 10^9 bytes per second, which are bytes per nanosecond.
std::string rateText(const runtime::ArenaCopy& copy) {
  if (copy.copying.value() <= 0) return "";
  const double rate =
      static_cast<double>(copy.bytes.value()) / static_cast<double>(copy.copying.value());
  return fmt::format(" at {:.1f} GB/s", rate);
}

std::string copyText(const runtime::ArenaCopy& copy) {
  return fmt::format("{} ({} copied in {}{})", formatDuration(copy.whole), formatBytes(copy.bytes),
                     formatDuration(copy.copying), rateText(copy));
}

nlohmann::ordered_json copyJson(const runtime::ArenaCopy& copy) {
  return {{"bytes", copy.bytes.value()},
          {"copy_ns", copy.copying.value()},
          {"whole_ns", copy.whole.value()}};
}

}  // namespace

void addPauseFlags(CLI::App& command, RunPauses& pauses) {
  const CLI::Range steps(int64_t{1}, int64_t{1'000'000'000});
  command.add_option("--save-every", pauses.saveEvery, "save each time this many steps are done")
      ->check(steps)
      ->needs("--save");
  command
      .add_option(
          "--release-every", pauses.releaseEvery,
          "each time this many steps are done, give the device memory back and get it again "
          "at once, and say how long that takes")
      ->check(steps);
}

std::string releasesText(llvm::ArrayRef<runtime::ArenaRelease> releases) {
  const bool isOne = releases.size() == 1;
  std::string text = "released   " +
                     (isOne ? "once, in " : fmt::format("{} times, the last in ", releases.size()));
  text += copyText(releases.back().out) + "\n";
  text += "           restored in " + copyText(releases.back().back) + "\n";
  if (!isOne)
    text += "           the first was released in " + copyText(releases.front().out) + "\n";
  return text;
}

nlohmann::ordered_json releasesJson(llvm::ArrayRef<runtime::ArenaRelease> releases) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const runtime::ArenaRelease& release : releases) {
    json.push_back({{"out", copyJson(release.out)}, {"back", copyJson(release.back)}});
  }
  return json;
}

}  // namespace stowage::tools
