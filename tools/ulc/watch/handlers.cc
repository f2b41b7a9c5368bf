// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/watch/handlers.h"

#include <fmt/format.h>

namespace ulc::tools {
namespace {

constexpr std::uint32_t kPorts = 256;             ///< GAMMA_PORTS
constexpr std::uint32_t kExpressHandlers = 4096;  ///< EXPRESS_HANDLERS_MAX
constexpr std::uint32_t kSkewMs = 60'000;

}  // namespace

RunningHandler handler_of(const abi::EndpointRow& row, std::uint32_t now_ms) noexcept {
    RunningHandler out{row.endpoint, row.pid, row.rank};
    const auto kind = static_cast<abi::HandlerKind>(row.handler >> 24);
    const std::uint32_t number = row.handler & 0xff'ffff;
    std::uint32_t numbers = 0;
    if (kind == abi::HandlerKind::kPort) numbers = kPorts;
    if (kind == abi::HandlerKind::kExpress) numbers = kExpressHandlers;
    if (number >= numbers) return out;
    out.kind = kind;
    out.number = static_cast<std::uint16_t>(number);
    // Both wrap. An instant a little behind `now_ms` is of a clock that was read later.
    const std::uint32_t age = now_ms - row.handler_since_ms;
    out.ms = age > UINT32_MAX - kSkewMs ? 0 : age;
    return out;
}

std::vector<RunningHandler> long_handlers(std::span<const abi::EndpointRow> rows,
                                          std::uint32_t now_ms) {
    std::vector<RunningHandler> out;
    for (const abi::EndpointRow& row : rows) {
        const RunningHandler handler = handler_of(row, now_ms);
        if (handler.kind != abi::HandlerKind::kNone && handler.ms >= kLongHandlerMs)
            out.push_back(handler);
    }
    return out;
}

std::string_view word_of(abi::HandlerKind kind) noexcept {
    return kind == abi::HandlerKind::kPort ? "port" : "express";
}

std::string sentence_of(const RunningHandler& handler) {
    const std::string rank =
        handler.rank == abi::kNoRowRank ? std::string{} : fmt::format("rank {}, ", handler.rank);
    const char* what =
        handler.kind == abi::HandlerKind::kPort ? "the handler of port" : "message handler number";
    return fmt::format(
        "process {} ({}endpoint {:#x}): {} {} has not returned for {}.{} s; its messages wait; "
        "look at it with: gdb -p {}",
        handler.pid, rank, handler.endpoint, what, handler.number, handler.ms / 1000,
        handler.ms % 1000 / 100, handler.pid);
}

}  // namespace ulc::tools
