// SPDX-License-Identifier: Apache-2.0
#include "planner/report/memory_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/report/chart.h"

namespace stowage::planner {

namespace {

// Of the picture, in pixels.
constexpr double kWidth = 900;
constexpr double kHeight = 380;
constexpr double kTop = 76;
constexpr double kBottom = 320;
constexpr int kPanelWidth = 380;
constexpr std::array<double, 2> kLefts = {70, 500};

constexpr std::array<const char*, kMemoryGroupCount> kColours = {"#1f5fa8", "#6ba3d6", "#e0a030",
                                                                 "#2e8540", "#b0b0b0"};

/// The fullest point of each pixel column of a panel; a column without a begin has the one before.
std::vector<GroupBytes> toColumns(const MemoryHistory& history, double nsPerColumn) {
  const double length = static_cast<double>(history.stepTime.value()) / nsPerColumn;
  std::vector<GroupBytes> columns(static_cast<size_t>(std::clamp(
      static_cast<int>(std::lround(length)), history.points.empty() ? 0 : 1, kPanelWidth)));
  GroupBytes held{};
  size_t next = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i] = held;
    const int64_t end = std::llround(static_cast<double>(i + 1) * nsPerColumn);
    const bool isLast = i + 1 == columns.size();
    for (; next < history.points.size(); ++next) {
      const MemoryPoint& point = history.points[next];
      if (!isLast && point.start.value() >= end) break;
      held = point.bytes;
      if (sumOf(held) > sumOf(columns[i])) columns[i] = held;
    }
  }
  return columns;
}

class Drawing {
 public:
  Drawing(const MemoryChart& chart, llvm::raw_ostream& os)
      : chart_(chart),
        svg_(kWidth, kHeight, os),
        bytes_(unitOfBytes(mostBytes())),
        time_(unitOfTime(longest())),
        y_(0, mostBytes() / bytes_.size, kBottom, kTop) {}

  void draw() {
    svg_.text({kLefts[0], 24}, "start", Svg::escape(chart_.title), " font-size=\"15\"");
    drawLegend();
    drawPanel(kLefts[0], "everything kept", chart_.unplanned);
    drawPanel(kLefts[1], "planned", chart_.planned);
    svg_.line({kLefts[1], yOf(chart_.budget)}, {kLefts[1] + kPanelWidth, yOf(chart_.budget)},
              "#b3261e", " stroke-dasharray=\"6 4\"");
    svg_.text({18, (kTop + kBottom) / 2}, "middle", fmt::format("device bytes ({})", bytes_.name),
              fmt::format(" transform=\"rotate(-90 18 {:.0f})\"", (kTop + kBottom) / 2));
    svg_.end();
  }

 private:
  double mostBytes() const {
    const Bytes most = std::max(chart_.unplanned.peak(), chart_.planned.peak());
    return static_cast<double>(std::max(most, chart_.budget).value());
  }
  double longest() const {
    const Nanoseconds time = std::max(chart_.unplanned.stepTime, chart_.planned.stepTime);
    return static_cast<double>(std::max(time, Nanoseconds(1)).value());
  }
  double yOf(Bytes bytes) const { return y_.at(static_cast<double>(bytes.value()) / bytes_.size); }

  void drawPanel(double left, const char* name, const MemoryHistory& history) {
    for (const double tick : y_.ticks()) {
      svg_.line({left, y_.at(tick)}, {left + kPanelWidth, y_.at(tick)}, "#e4e4e4");
      svg_.text({left - 8, y_.at(tick) + 4}, "end", fmt::format("{:.6g}", tick));
    }
    const Axis x(0, longest() / time_.size, left, left + kPanelWidth);
    const double nsPerColumn = time_.size / (x.at(1) - x.at(0));
    drawAreas(left, toColumns(history, nsPerColumn));
    for (const double tick : x.ticks()) {
      svg_.line({x.at(tick), kBottom}, {x.at(tick), kBottom + 5}, "black");
      svg_.text({x.at(tick), kBottom + 20}, "middle", fmt::format("{:.6g}", tick));
    }
    svg_.line({left, kBottom}, {left + kPanelWidth, kBottom}, "black");
    svg_.text({left + kPanelWidth / 2.0, kBottom + 42}, "middle",
              fmt::format("time in the step ({})", time_.name));
    svg_.text({left, kTop - 8}, "start",
              fmt::format("{}: peak {}, step {}", name, formatBytes(history.peak()),
                          formatDuration(history.stepTime)),
              " font-weight=\"bold\"");
  }

  /// One area per group, each on top of those before.
  void drawAreas(double left, const std::vector<GroupBytes>& columns) {
    if (columns.empty()) return;
    std::vector<int64_t> below(columns.size(), 0);
    for (size_t group = 0; group < kMemoryGroupCount; ++group) {
      std::vector<int64_t> above = below;
      for (size_t i = 0; i < columns.size(); ++i) above[i] += columns[i][group];
      if (above != below) drawArea(left, below, above, kColours[group]);
      below = std::move(above);
    }
  }

  void drawArea(double left, const std::vector<int64_t>& below, const std::vector<int64_t>& above,
                const char* colour) {
    const auto count = static_cast<double>(above.size());
    std::string path = fmt::format("M{:.0f} {:.1f}", left, yOf(Bytes(above.front())));
    for (size_t i = 1; i < above.size(); ++i) {
      if (above[i] == above[i - 1]) continue;
      path += fmt::format("H{:.0f}V{:.1f}", left + static_cast<double>(i), yOf(Bytes(above[i])));
    }
    path += fmt::format("H{:.0f}V{:.1f}", left + count, yOf(Bytes(below.back())));
    for (size_t i = below.size() - 1; i > 0; --i) {
      if (below[i - 1] == below[i]) continue;
      path +=
          fmt::format("H{:.0f}V{:.1f}", left + static_cast<double>(i), yOf(Bytes(below[i - 1])));
    }
    svg_.stream() << fmt::format("<path fill=\"{}\" d=\"{}H{:.0f}Z\"/>\n", colour, path, left);
  }

  void drawLegend() {
    double x = kLefts[0];
    for (size_t group = 0; group < kMemoryGroupCount; ++group) {
      svg_.line({x, 44}, {x + 14, 44}, kColours[group], " stroke-width=\"10\"");
      svg_.text({x + 20, 48}, "start", memoryGroupName(static_cast<MemoryGroup>(group)));
      x += 130;
    }
    svg_.line({x, 44}, {x + 18, 44}, "#b3261e", " stroke-dasharray=\"6 4\"");
    svg_.text({x + 24, 48}, "start", "budget " + formatBytes(chart_.budget));
  }

  const MemoryChart& chart_;
  Svg svg_;
  ChartUnit bytes_, time_;
  Axis y_;
};

}  // namespace

MemoryChart makeMemoryChart(const ExplainInput& input, const ir::Target& target, Bytes budget) {
  const bool isEstimate = input.costs.source == ir::CostSource::kRoofline;
  return {.title = "'" + input.graph.name() + "': device memory over one step, " +
                   (isEstimate ? "estimated" : "measured") + " costs",
          .unplanned = findUnplannedMemory(input.graph, target, input.costs),
          .planned = findPlannedMemory(input),
          .budget = budget};
}

void drawMemory(const MemoryChart& chart, llvm::raw_ostream& os) { Drawing(chart, os).draw(); }

}  // namespace stowage::planner
