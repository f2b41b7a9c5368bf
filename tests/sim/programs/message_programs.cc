// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/message_programs.h"

#include <algorithm>
#include <span>

namespace ulc::sim {
namespace {

/// Chunks as libulc cuts them: an eighth of the arena.
std::size_t chunk_of(const RingClient& client) {
    return std::clamp<std::size_t>(client.region().layout().tx_arena_octets / 8, 4096, 256U << 10);
}

}  // namespace

std::uint64_t message_number(Rank source, std::uint64_t n) {
    return (std::uint64_t{source} << 40) + n;
}

bool MessageSender::send(std::uint64_t number) {
    const std::vector<std::byte> payload = Oracle::payload(number, octets_);
    const std::size_t chunk = chunk_of(client_);
    if (octets_ <= chunk) return client_.send(stream_, number, payload);
    while (offset_ < octets_) {
        const std::size_t octets = std::min(chunk, octets_ - offset_);
        if (!client_.send_chunk(stream_, number, std::span(payload).subspan(offset_, octets),
                                offset_, octets_))
            return false;
        offset_ += octets;
    }
    offset_ = 0;
    return true;
}

Nanos Receiver::act(Nanos now) {
    client_.poll();
    client_.sends_done.clear();
    for (const Message& message : client_.messages) {
        const std::uint64_t n = next_[message.source]++;
        const std::uint64_t due = message_number(message.source, n);
        if (log_.error.empty() &&
            (message.tag != due || message.payload != Oracle::payload(due, octets_)))
            log_.error = "rank " + std::to_string(rank_) + " got from " +
                         std::to_string(message.source) + " a wrong message instead of number " +
                         std::to_string(n);
        on_message(message, now);
    }
    client_.messages.clear();
    if (client_.closed() != 0 && log_.error.empty())
        log_.error = "rank " + std::to_string(rank_) + " was closed by its engine";
    return kNever;
}

void Receiver::on_message(const Message& message, Nanos now) {
    const auto n = static_cast<std::size_t>(message.tag - message_number(message.source, 0));
    const auto& sent_at = log_.sent_at[message.source];
    ++log_.messages;
    log_.octets += message.payload.size();
    log_.octets_by_source[message.source] += message.payload.size();
    if (n < sent_at.size()) log_.latency.push_back(now - sent_at[n]);
    if (log_.on_delivery) log_.on_delivery();
}

Nanos StreamProgram::act(Nanos now) {
    const Nanos next = Receiver::act(now);
    auto& sent_at = log_.sent_at[rank_];
    while (sent_ < count_) {
        if (sent_at.size() == sent_) sent_at.push_back(now);  // when it first wanted to
        if (!sender_.send(message_number(rank_, sent_))) break;
        ++sent_;
    }
    return next;
}

Nanos PingPong::act(Nanos now) {
    const Nanos next = Receiver::act(now);
    const std::uint64_t may_send = std::min(count_, rank_ == 0 ? got_ + 1 : got_);
    while (sent_ < may_send) {
        if (!sender_.send(message_number(rank_, sent_))) break;
        ++sent_;
        began_ = now;
    }
    return next;
}

void PingPong::on_message(const Message& message, Nanos now) {
    ++got_;
    if (rank_ != 0) return;
    ++log_.messages;
    log_.octets += message.payload.size();
    log_.octets_by_source[message.source] += message.payload.size();
    log_.latency.push_back((now - began_) / 2);
    if (log_.on_delivery) log_.on_delivery();
}

}  // namespace ulc::sim
