// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/numa_node.h"

#include <linux/mempolicy.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>
#include <vector>

namespace stowage::runtime {

namespace {

constexpr size_t kMostNodes = 1024;                             // that a kernel is built for
constexpr size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;  // NOLINT: the system call's type

/// The numbers of a file that holds "0-3,8": 0, 1, 2, 3, 8. None where it is not there.
std::vector<int> readList(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  llvm::SmallVector<llvm::StringRef, 8> ranges;
  llvm::StringRef(line).split(ranges, ',', -1, /*KeepEmpty=*/false);
  std::vector<int> numbers;
  for (const llvm::StringRef range : ranges) {
    const auto [from, to] = range.split('-');
    int first = 0;
    int last = 0;
    if (from.getAsInteger(10, first)) continue;
    if (to.getAsInteger(10, last)) last = first;
    for (int number = first; number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::optional<int> findNumaNode(const std::string& busId, const std::string& root) {
  if (readList(root + "/sys/devices/system/node/has_memory").size() < 2) return std::nullopt;
  const std::string device = llvm::StringRef(busId).lower();  // as folders have it
  std::ifstream file(root + "/sys/bus/pci/devices/" + device + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;  // -1: not known
  return node;
}

bool preferNumaNode(void* base, Bytes bytes, int node) {
  const auto bit = static_cast<size_t>(node);
  if (node < 0 || bit >= kMostNodes) return false;
  std::array<unsigned long, kMostNodes / kWordBits> nodes{};  // NOLINT: the system call's type
  nodes[bit / kWordBits] = 1UL << (bit % kWordBits);
  return syscall(SYS_mbind, base, static_cast<size_t>(bytes.value()), MPOL_PREFERRED, nodes.data(),
                 kMostNodes + 1, 0U) == 0;
}

bool runOnNumaNode(int node, const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node/node" + std::to_string(node);
  cpu_set_t processors;
  CPU_ZERO(&processors);
  for (const int processor : readList(folder + "/cpulist")) {
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(processor, &processors);
  }
  return sched_setaffinity(0, sizeof(processors), &processors) == 0;
}

}  // namespace stowage::runtime
