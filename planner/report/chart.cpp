// SPDX-License-Identifier: Apache-2.0
#include "planner/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/base/printable.h"

namespace stowage::planner {

namespace {

constexpr int kTicks = 5;  // about so many along an axis

constexpr std::array<ChartUnit, 5> kByteUnits = {{{"B", 1},
                                                  {"KiB", 1024.0},
                                                  {"MiB", 1048576.0},
                                                  {"GiB", 1073741824.0},
                                                  {"TiB", 1099511627776.0}}};
constexpr std::array<ChartUnit, 4> kTimeUnits = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

template <size_t N>
ChartUnit unitFor(const std::array<ChartUnit, N>& units, double most) {
  ChartUnit found = units.front();
  for (const ChartUnit& unit : units) {
    if (most >= unit.size) found = unit;
  }
  return found;
}

/// 1, 2 or 5 times a power of ten, about `span` / kTicks.
double tickDistance(double span) {
  const double rough = span / kTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

}  // namespace

ChartUnit unitOfBytes(double most) { return unitFor(kByteUnits, most); }
ChartUnit unitOfTime(double most) { return unitFor(kTimeUnits, most); }

Axis::Axis(double least, double most, double from, double to)
    : distance_(tickDistance(most > least ? most - least : std::max(most, 1.0))),
      first_(std::floor(least / distance_) * distance_),
      last_(std::max(std::ceil(most / distance_) * distance_, first_ + distance_)),
      from_(from),
      to_(to) {}

std::vector<double> Axis::ticks() const {
  std::vector<double> all;
  const auto count = static_cast<int>(std::lround((last_ - first_) / distance_));
  for (int i = 0; i <= count; ++i) all.push_back(first_ + i * distance_);
  return all;
}

Svg::Svg(double width, double height, llvm::raw_ostream& os) : os_(os) {
  os_ << fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n",
      width, height);
  os_ << fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"white\"/>\n", width, height);
}

void Svg::text(Place at, const char* anchor, const std::string& words, const std::string& more) {
  os_ << fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at.x, at.y,
                     anchor, more, words);
}

void Svg::line(Place from, Place to, const char* colour, const char* more) {
  os_ << fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", from.x,
      from.y, to.x, to.y, colour, more);
}

std::string Svg::escape(const std::string& text) {
  std::string safe;
  for (const char c : ir::printable(text)) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace stowage::planner
