// SPDX-License-Identifier: Apache-2.0
#include "tools/run/measured_links.h"

#include <fmt/format.h>

#include <string>

#include "ir/base/units.h"

namespace stowage::tools {

namespace {

std::string formatRate(BytesPerSecond rate) {
  return fmt::format("{:.1f} GB/s", static_cast<double>(rate.value()) / 1e9);
}

std::string formatRates(const ir::LinkModel& links) {
  return formatRate(links.deviceToHost.bandwidth) + " to the host, " +
         formatRate(links.hostToDevice.bandwidth) + " from it";
}

std::string formatPercent(int permille) { return fmt::format("{:.0f} %", permille / 10.0); }

std::string formatDisk(const ir::LinkRate& rate, const char* what) {
  return formatRate(rate.bandwidth) + what + formatDuration(rate.latency);
}

}  // namespace

void printLinks(const MeasuredLinks& links, llvm::raw_ostream& os) {
  const ir::LinkModel& alone = links.alone;
  os << "links      " << formatRates(alone);
  if (alone.bothPermille < 1000) {
    os << ", " << formatPercent(alone.bothPermille) << " of that both at once";
  }
  if (const std::string inSteps = formatRates(links.inSteps); inSteps != formatRates(alone)) {
    os << "; in steps " << inSteps;
  }
  os << '\n';
  if (links.inSteps.launch > Nanoseconds(0)) {
    os << "           launch overhead of a copy " << formatDuration(links.inSteps.launch) << '\n';
  }
  if (alone.hostUpdates > BytesPerSecond(0)) {
    os << "host       updates at " << formatRate(alone.hostUpdates)
       << " beside copies; those from the host keep " << formatPercent(alone.besideHostPermille)
       << " of their rate\n";
  }
  if (links.hasRanks) {
    os << "ranks      " << formatRate(alone.betweenRanks.bandwidth)
       << " from the others together, after " << formatDuration(alone.betweenRanks.latency);
    if (alone.besideRanksPermille < 1000) {
      os << "; compute keeps " << formatPercent(alone.besideRanksPermille) << " of its rate beside";
    }
    os << '\n';
  }
  if (!links.hasDisk) return;
  os << "disk       " << formatDisk(alone.diskWrite, " written, after ") << "; "
     << formatDisk(alone.diskRead, " read, after ") << "; " << formatPercent(alone.diskBothPermille)
     << " of that both at once\n";
}

nlohmann::ordered_json linksJson(const ir::LinkModel& links, bool hasDisk, bool hasRanks) {
  const auto rate = [](const ir::LinkRate& link) {
    return nlohmann::ordered_json{{"bytes_per_s", link.bandwidth.value()},
                                  {"latency_ns", link.latency.value()}};
  };
  nlohmann::ordered_json json = {{"d2h", rate(links.deviceToHost)},
                                 {"h2d", rate(links.hostToDevice)},
                                 {"both_permille", links.bothPermille},
                                 {"launch_ns", links.launch.value()}};
  if (links.hostUpdates > BytesPerSecond(0)) {
    json["host_updates_bytes_per_s"] = links.hostUpdates.value();
    json["h2d_beside_host_permille"] = links.besideHostPermille;
  }
  if (hasRanks) {
    json["between_ranks"] = rate(links.betweenRanks);
    json["compute_beside_ranks_permille"] = links.besideRanksPermille;
  }
  if (hasDisk) {
    json["disk_read"] = rate(links.diskRead);
    json["disk_write"] = rate(links.diskWrite);
    json["disk_both_permille"] = links.diskBothPermille;
  }
  return json;
}

}  // namespace stowage::tools
