// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tables/claims/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ulc::sim {
namespace {

bool is_bound(const Figure& figure) {
    return figure.kind == FigureKind::kAtMost || figure.kind == FigureKind::kAtLeast;
}

std::string with_unit(double value, const std::string& unit) {
    const char* const format = value >= 100 ? "{:.0f}" : value >= 10 ? "{:.1f}" : "{:.2f}";
    return fmt::format(fmt::runtime(format), value) + (unit.empty() ? "" : " " + unit);
}

std::string fault_of(const Table& table, const Shape& shape) {
    if (shape.beyond && shape.holds != (*shape.beyond <= 1))
        return fmt::format("'{}' is judged against its own factor", shape.claim);
    if (shape.figure.empty()) return {};
    const auto figure = std::ranges::find(table.figures, shape.figure, &Figure::what);
    if (figure == table.figures.end())
        return fmt::format("'{}' is about a figure that is not there", shape.claim);
    if (figure->kind == FigureKind::kInput)
        return fmt::format("'{}' is about an input", shape.claim);
    if (is_bound(*figure) && figure->keeps_bound() != shape.holds)
        return fmt::format("'{}' contradicts its bound", shape.claim);
    return {};
}

std::string fault_of(const Table& table, const Figure& figure) {
    if (figure.kind == FigureKind::kInput && !figure.paper)
        return fmt::format("'{}' is an input without a figure of a paper", figure.what);
    const bool has_claim =
        std::ranges::find(table.shapes, figure.what, &Shape::figure) != table.shapes.end();
    if (figure.keeps_bound() && !has_claim)
        return fmt::format("'{}' is a bound without a claim", figure.what);
    return {};
}

}  // namespace

double beyond(double value, const Allowed& allowed) {
    if (value >= allowed.least && value <= allowed.most) return 1;
    if (value > allowed.most) return value / allowed.most;
    return value > 0 ? allowed.least / value : std::numeric_limits<double>::infinity();
}

Shape claim_of(std::string claim, std::string ours, double value, const Allowed& allowed) {
    const double factor = beyond(value, allowed);
    return {std::move(claim), std::move(ours), factor <= 1, factor, {}};
}

void add_near(Table& table, Figure figure, double share) {
    ULC_CHECK(figure.kind == FigureKind::kPrediction && figure.paper && figure.ours);
    Shape shape =
        claim_of(fmt::format("{} is within {:.0f} % of the paper's", figure.what, share * 100),
                 with_unit(*figure.ours, figure.unit), *figure.ours,
                 {*figure.paper * (1 - share), *figure.paper * (1 + share)});
    shape.figure = figure.what;
    table.shapes.push_back(std::move(shape));
    table.figures.push_back(std::move(figure));
}

void add_bound(Table& table, Figure figure, std::string claim) {
    ULC_CHECK(is_bound(figure) && figure.paper && figure.ours);
    const Allowed allowed = figure.kind == FigureKind::kAtMost ? Allowed{.most = *figure.paper}
                                                               : Allowed{.least = *figure.paper};
    Shape shape =
        claim_of(std::move(claim), with_unit(*figure.ours, figure.unit), *figure.ours, allowed);
    shape.figure = figure.what;
    table.shapes.push_back(std::move(shape));
    table.figures.push_back(std::move(figure));
}

std::string fault_of(const Table& table) {
    for (const Shape& shape : table.shapes)
        if (std::string fault = fault_of(table, shape); !fault.empty()) return fault;
    for (const Figure& figure : table.figures)
        if (std::string fault = fault_of(table, figure); !fault.empty()) return fault;
    return {};
}

}  // namespace ulc::sim
