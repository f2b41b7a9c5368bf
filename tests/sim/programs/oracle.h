// SPDX-License-Identifier: BSD-3-Clause
// Derives the messages that must arrive from those sent: exactly once, in submission order per
// (source, destination) across unicast and multicast, with the right bytes. The bytes of a message
// follow from its number, so none are kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "tests/sim/cluster/ring_client.h"

namespace ulc::sim {

class Oracle {
public:
    /// Returns the bytes of message `number`.
    static std::vector<std::byte> payload(std::uint64_t number, std::size_t length) {
        std::vector<std::byte> out(length);
        Prng prng(number);
        for (std::size_t at = 0; at < length; at += 8) {
            const std::uint64_t word = prng.next();
            std::memcpy(out.data() + at, &word, std::min<std::size_t>(8, length - at));
        }
        return out;
    }

    /// Notes that `source` submitted message `number` to these ranks.
    void sent(Rank source, std::span<const Rank> to, std::uint64_t number, std::size_t length,
              std::uint32_t stream_if_group) {
        for (const Rank rank : to) {
            if (rank == source) continue;
            const std::uint32_t stream = stream_if_group != 0 ? stream_if_group : rank;
            due_[{source, rank}].push_back({number, length, stream});
            ++outstanding_;
        }
    }

    /// Checks a message delivered to `receiver`. Returns an empty string if it is correct.
    std::string received(Rank receiver, const Message& message) {
        auto& queue = due_[{message.source, receiver}];
        const std::string who = "from " + std::to_string(message.source) + " to " +
                                std::to_string(receiver) + ": number " +
                                std::to_string(message.tag);
        if (queue.empty()) return who + " was not due: doubled or never sent";
        const Due due = queue.front();
        queue.pop_front();
        --outstanding_;
        if (due.number != message.tag)
            return who + " before " + std::to_string(due.number) + ": lost or out of order";
        if (due.stream != message.stream) return who + " by the wrong stream";
        if (message.payload != payload(due.number, due.length)) return who + " has wrong octets";
        return {};
    }

    /// Checks the same for a profile without retransmission: the messages before it in its stream
    /// were lost and do not come any more, and the order of other streams is free.
    std::string received_in_stream(Rank receiver, const Message& message) {
        auto& queue = due_[{message.source, receiver}];
        const auto found = std::ranges::find(queue, message.tag, &Due::number);
        const std::string who = "from " + std::to_string(message.source) + " to " +
                                std::to_string(receiver) + ": number " +
                                std::to_string(message.tag);
        if (found == queue.end()) return who + " was not due: doubled, late or never sent";
        const Due due = *found;
        if (due.stream != message.stream) return who + " by the wrong stream";
        if (message.payload != payload(due.number, due.length)) return who + " has wrong octets";
        outstanding_ -= std::erase_if(queue, [&due](const Due& other) {
            return other.stream == due.stream && other.number <= due.number;
        });
        return {};
    }

    [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_; }
    /// Returns, for a report, the first message that is due.
    [[nodiscard]] std::string first_due() const {
        for (const auto& [pair, queue] : due_)
            if (!queue.empty())
                return "from " + std::to_string(pair.first) + " to " + std::to_string(pair.second) +
                       ": number " + std::to_string(queue.front().number);
        return "none";
    }
    /// Removes the messages that are due to or from a rank that died.
    void forget(Rank rank) {
        for (auto& [pair, queue] : due_) {
            if (pair.first != rank && pair.second != rank) continue;
            outstanding_ -= queue.size();
            queue.clear();
        }
    }

private:
    struct Due {
        std::uint64_t number;
        std::size_t length;
        std::uint32_t stream;
    };
    std::map<std::pair<Rank, Rank>, std::deque<Due>> due_;
    std::uint64_t outstanding_ = 0;
};

}  // namespace ulc::sim
