// SPDX-License-Identifier: Apache-2.0
#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/graph/op_table.h"
#include "ir/schedule/fingerprint.h"
#include "tests/property/mutations.h"

namespace stowage::tests {

namespace {

using ir::Command;
using ir::CommandId;
using ir::CommandKind;
using ir::ResidencyId;
using ir::Stream;

bool isRun(const Command& command) { return command.kind == CommandKind::kRun; }
bool isOriginal(const Command& command) { return isRun(command) && command.recompute == 0; }

const ir::OpInfo& opOf(const Case& changed, const Command& run) {
  return ir::lookUpOp(changed.graph->node(run.node).op);
}

bool leavesResultsOnHost(const ir::Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (const ir::Access& access : graph.accesses(ir::NodeId(i))) {
      if (access.writes() && graph.storage(access.storage).home == ir::Space::kHost) return true;
    }
  }
  return false;
}

bool isOnDiskOrHost(const Command& command) {
  return command.stream >= Stream::kDiskRead && command.stream <= Stream::kHostCompute;
}

void makeOneGraph(ir::Schedule& schedule) {
  schedule.graphMode = ir::GraphMode::kWhole;
  schedule.joined = true;
  for (Command& command : schedule.commands) command.prev.clear();
}

/// A mutation of one command: applies where `change` says so.
MutationKind atCommand(const char* name, int rule,
                       const std::function<bool(Case&, Command&)>& change,
                       std::set<int> expected = {}) {
  if (expected.empty()) expected = {rule};
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, original.schedule.commands.size(), visit,
                            [&](Case& changed, size_t i) -> Change {
                              Command& command = changed.schedule.commands[i];
                              return {change(changed, command), "c" + std::to_string(i), expected};
                            });
          }};
}

/// A mutation that moves commands about: gets the position.
MutationKind atPosition(const char* name, int rule,
                        const std::function<bool(ir::Schedule&, size_t, const Case&)>& change) {
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(
                original, original.schedule.commands.size(), visit,
                [&](Case& changed, size_t i) -> Change {
                  return {change(changed.schedule, i, original), "c" + std::to_string(i), {rule}};
                });
          }};
}

MutationKind once(const char* name, int rule, const std::function<bool(Case&)>& change) {
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, 1, visit, [&](Case& changed, size_t) -> Change {
              return {change(changed), "", {rule}};
            });
          }};
}

/// A mutation of one node of the graph, with the schedule's fingerprint made to fit if asked.
MutationKind atNode(const char* name, int rule, bool restamp,
                    const std::function<bool(ir::Node&, const ir::Graph&)>& change) {
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, original.graph->nodes().size(), visit,
                            [&](Case& changed, size_t i) -> Change {
                              ir::GraphBuilder builder(*original.graph);
                              bool applies = false;
                              for (size_t n = 0; n < original.graph->nodes().size(); ++n) {
                                ir::Node node = original.graph->nodes()[n];
                                if (n == i) applies = change(node, *original.graph);
                                builder.addNode(std::move(node));
                              }
                              changed.graph =
                                  std::make_shared<ir::Graph>(std::move(builder).finish());
                              if (restamp) {
                                changed.schedule.graphFingerprint = ir::fingerprint(*changed.graph);
                              }
                              return {applies, "n" + std::to_string(i), {rule}};
                            });
          }};
}

std::vector<MutationKind> structureMutations() {
  return {
      atCommand("operand dropped", 1,
                [](Case&, Command& command) {
                  if (command.in.empty()) return false;
                  command.in.pop_back();
                  return true;
                }),
      atCommand("operand out of range", 1,
                [](Case& changed, Command& command) {
                  ResidencyId& id = isRun(command) ? command.out.front() : command.to;
                  id = ResidencyId(changed.schedule.residencies.size());
                  return true;
                }),
      atCommand("waits out of order", 1,
                [](Case&, Command& command) {
                  std::reverse(command.wait.begin(), command.wait.end());
                  return command.wait.size() > 1;
                }),
      atCommand("node out of range", 1,
                [](Case& changed, Command& command) {
                  if (isRun(command)) command.node = ir::NodeId(changed.graph->nodes().size());
                  return isRun(command);
                }),
      atNode("number of a node changed", 2, false,
             [](ir::Node& node, const ir::Graph&) {
               for (ir::Argument& argument : node.args) {
                 if (auto* number = std::get_if<int64_t>(&argument)) {
                   ++*number;
                   return true;
                 }
                 if (auto* number = std::get_if<double>(&argument)) {
                   *number *= 0.5;
                   return true;
                 }
               }
               return false;
             }),
      once("other number of threads", 3,
           [](Case& changed) {
             ++changed.target.intraOpThreads;
             return true;
           }),
      once("other workspace", 3,
           [](Case& changed) {
             for (auto* reserved : {&changed.target.reserved, &changed.schedule.reserved}) {
               if (reserved->empty()) return false;
               reserved->front().bytes += Bytes(-changed.target.alignBytes);
             }
             return true;
           }),
      atNode("step scalar without a feed", 27, true,
             [](ir::Node& node, const ir::Graph& graph) {
               for (ir::Argument& argument : node.args) {
                 if (auto* scalar = std::get_if<ir::ScalarArg>(&argument)) {
                   scalar->scalar = ir::ScalarId(graph.scalars().size());
                   return true;
                 }
               }
               return false;
             }),
      once("newer op table", 28,
           [](Case& changed) {
             ++changed.schedule.opTableVersion;
             return true;
           }),
      once("older op table", 28,
           [](Case& changed) {
             --changed.schedule.opTableVersion;
             return true;
           }),
  };
}

/// A recompute of the launch at `index`, right after it, on its operands.
void insertRecomputeAfter(ir::Schedule& schedule, size_t index) {
  Command again = schedule.commands[index];
  again.recompute = 1;
  insertCommand(schedule, index + 1, again);
}

bool writesPersistent(const Case& original, const Command& run) {
  return std::any_of(run.out.begin(), run.out.end(), [&](ResidencyId out) {
    return original.graph->storage(original.schedule.residency(out).storage).persistent;
  });
}

std::vector<MutationKind> runMutations() {
  return {
      atPosition("original deleted", 4,
                 [](ir::Schedule& schedule, size_t i, const Case&) {
                   if (!isOriginal(schedule.commands[i])) return false;
                   eraseCommand(schedule, i);
                   return true;
                 }),
      atPosition("original twice", 4,
                 [](ir::Schedule& schedule, size_t i, const Case&) {
                   if (!isOriginal(schedule.commands[i])) return false;
                   insertCommand(schedule, i + 1, schedule.commands[i]);
                   return true;
                 }),
      atPosition("recompute of an op that is not recomputable", 5,
                 [](ir::Schedule& schedule, size_t i, const Case& original) {
                   const Command& run = schedule.commands[i];
                   if (!isOriginal(run)) return false;
                   const ir::OpInfo& op = opOf(original, run);
                   const bool inReplayForm = *op.replayForm != '\0';  // would have other operands
                   if (inReplayForm) return false;
                   if (op.recomputable && !writesPersistent(original, run)) return false;
                   insertRecomputeAfter(schedule, i);
                   return true;
                 }),
      atPosition("recompute before its original", 5,
                 [](ir::Schedule& schedule, size_t i, const Case&) {
                   Command& run = schedule.commands[i];
                   if (!isRun(run) || run.recompute != 1) return false;
                   for (Command& command : schedule.commands) {
                     if (isOriginal(command) && command.node == run.node) {
                       std::swap(command.recompute, run.recompute);
                       return true;
                     }
                   }
                   return false;
                 }),
      atCommand("recompute with another number", 5,
                [](Case&, Command& command) { return isRun(command) && command.recompute++ > 0; }),
      atPosition("draws swapped", 6,
                 [](ir::Schedule& schedule, size_t i, const Case& original) {
                   Command& first = schedule.commands[i];
                   if (!isOriginal(first) || !opOf(original, first).random) return false;
                   for (size_t j = i + 1; j < schedule.commands.size(); ++j) {
                     Command& second = schedule.commands[j];
                     if (!isOriginal(second) || !opOf(original, second).random) continue;
                     if (first.in.size() != second.in.size()) continue;
                     std::swap(first.node, second.node);
                     std::swap(first.in, second.in);
                     std::swap(first.out, second.out);
                     return true;
                   }
                   return false;
                 }),
      atPosition("output not offloaded", 6,
                 [](ir::Schedule& schedule, size_t i, const Case& original) {
                   const Command& copy = schedule.commands[i];
                   if (isRun(copy) || copy.stream != Stream::kDeviceToHost) return false;
                   if (!original.graph->storage(schedule.residency(copy.to).storage).output) {
                     return false;
                   }
                   eraseCommand(schedule, i);
                   return true;
                 }),
      atCommand("recompute without its rng slot", 26,
                [](Case& changed, Command& command) {
                  const bool applies =
                      isRun(command) && command.recompute > 0 && opOf(changed, command).random;
                  if (applies) command.rngSlot = -1;
                  return applies;
                }),
      atCommand("recompute with another rng slot", 26,
                [](Case& changed, Command& command) {
                  const bool applies =
                      isRun(command) && command.recompute > 0 && opOf(changed, command).random;
                  if (applies) ++command.rngSlot;
                  return applies;
                }),
      atCommand("slot of an original reused before its recompute", 26,
                [](Case& changed, Command& command) {
                  if (!isOriginal(command) || !opOf(changed, command).random) return false;
                  bool hasRecompute = false;
                  for (Command& other : changed.schedule.commands) {
                    if (isRun(other) && other.recompute > 0 && other.node == command.node) {
                      hasRecompute = true;
                    }
                  }
                  // The last slot that there may be, which nobody else has taken.
                  command.rngSlot = static_cast<int32_t>(changed.schedule.commands.size()) - 1;
                  return hasRecompute;
                }),
      atCommand("rng slot of a launch that draws nothing", 26,
                [](Case& changed, Command& command) {
                  if (!isRun(command) || opOf(changed, command).random) return false;
                  command.rngSlot = 0;
                  return true;
                }),
  };
}

std::vector<MutationKind> streamMutations() {
  std::vector<MutationKind> kinds = {
      atPosition("wait for itself", 14,
                 [](ir::Schedule& schedule, size_t i, const Case&) {
                   schedule.commands[i].wait.push_back(CommandId(i));
                   return true;
                 }),
      atPosition("wait for a later command", 14,
                 [](ir::Schedule& schedule, size_t i, const Case&) {
                   if (i + 1 == schedule.commands.size()) return false;
                   schedule.commands[i].wait.push_back(CommandId(i + 1));
                   return true;
                 }),
      once("one graph of a flowing step", 25,
           [](Case& changed) {
             changed.schedule.graphMode = ir::GraphMode::kWhole;
             return !changed.schedule.joined;
           }),
      atCommand("wait across a joined step boundary", 25,
                [](Case& changed, Command& command) {
                  command.prev = {CommandId(0)};
                  return changed.schedule.joined;
                }),
      once("one graph with results on the host", 25,
           [](Case& changed) {
             makeOneGraph(changed.schedule);
             return leavesResultsOnHost(*changed.graph);
           }),
      once("one graph with disk or host commands", 25,
           [](Case& changed) {
             makeOneGraph(changed.schedule);
             return llvm::any_of(changed.schedule.commands, isOnDiskOrHost);
           }),
  };
  for (const Stream stream :
       {Stream::kCompute, Stream::kDeviceToHost, Stream::kHostToDevice, Stream::kDiskRead,
        Stream::kDiskWrite, Stream::kCollective, Stream::kHostCompute}) {
    kinds.push_back(
        atCommand("launch on a stream that is not its own", 15, [stream](Case&, Command& command) {
          if (!isRun(command) || command.stream == stream) return false;
          command.stream = stream;
          return true;
        }));
  }
  for (const Stream stream : {Stream::kCompute, Stream::kHostCompute, Stream::kCollective}) {
    kinds.push_back(atCommand("copy on no copy engine", 15, [stream](Case&, Command& command) {
      if (isRun(command)) return false;
      command.stream = stream;
      return true;
    }));
  }
  return kinds;
}

}  // namespace

std::vector<MutationKind> shapeMutations() {
  std::vector<MutationKind> kinds = structureMutations();
  for (const auto& more : {runMutations(), streamMutations()}) {
    kinds.insert(kinds.end(), more.begin(), more.end());
  }
  return kinds;
}

}  // namespace stowage::tests
