// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/schedule/buffers.h"

#include <bit>
#include <span>

namespace ulc::sim {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

/// The receives that each event waits for, as a row of bits.
class Waits {
public:
    explicit Waits(const Arrivals& arrivals)
        : words_((arrivals.taken.size() + 63) / 64), bits_(arrivals.next.size() * words_) {
        for (std::size_t i = 0; i < arrivals.taken.size(); ++i)
            row(arrivals.taken[i])[i / 64] |= std::uint64_t{1} << i % 64;
        for (const std::size_t event : arrivals.order) {
            const std::span<const std::uint64_t> from = row(event);
            for (const std::size_t successor : arrivals.next[event]) {
                const std::span<std::uint64_t> into = row(successor);
                for (std::size_t word = 0; word < words_; ++word)
                    into[word] |= from[word];
            }
        }
    }
    [[nodiscard]] std::span<const std::uint64_t> of(std::size_t event) const {
        return std::span(bits_).subspan(event * words_, words_);
    }
    [[nodiscard]] std::size_t words() const { return words_; }

private:
    std::span<std::uint64_t> row(std::size_t event) {
        return std::span(bits_).subspan(event * words_, words_);
    }

    std::size_t words_;
    std::vector<std::uint64_t> bits_;
};

/// Pairs the maximum number of messages with receives that they wait for, by augmenting paths.
class Matching {
public:
    Matching(const Arrivals& arrivals, const Waits& waits)
        : arrivals_(arrivals), waits_(waits), message_of_(arrivals.taken.size(), kNone) {
        for (std::size_t message = 0; message < arrivals.sent.size(); ++message)
            if (!augment(message)) alone_.push_back(message);
    }
    /// Returns the messages without a partner.
    [[nodiscard]] const std::vector<std::size_t>& alone() const { return alone_; }

    /// Marks all receives on alternating paths from messages: all of them have partners.
    [[nodiscard]] std::vector<std::uint64_t> reached_from(std::vector<std::size_t> messages) const {
        std::vector<std::uint64_t> reached(waits_.words(), 0);
        while (!messages.empty()) {
            const std::size_t message = messages.back();
            messages.pop_back();
            each_new(message, reached,
                     [&](std::size_t receive) { messages.push_back(message_of_[receive]); });
        }
        return reached;
    }

private:
    /// Calls visit(receive) for each receive that the message waits for and that is not in `seen`
    /// yet, and adds it there.
    template <typename Visit>
    void each_new(std::size_t message, std::vector<std::uint64_t>& seen, Visit visit) const {
        const std::span<const std::uint64_t> row = waits_.of(arrivals_.sent[message]);
        for (std::size_t word = 0; word < row.size(); ++word) {
            std::uint64_t bits = row[word] & ~seen[word];
            seen[word] |= bits;
            for (; bits != 0; bits &= bits - 1)
                visit(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
        }
    }

    bool augment(std::size_t first) {
        std::vector<std::uint64_t> seen(waits_.words(), 0);
        std::vector<std::size_t> from(arrivals_.taken.size(), kNone);  // the message that led there
        std::vector<std::size_t> receive_of(arrivals_.sent.size(), kNone);
        std::vector<std::size_t> queue{first};
        for (std::size_t at = 0; at < queue.size(); ++at) {
            const std::size_t message = queue[at];
            std::size_t free = kNone;
            each_new(message, seen, [&](std::size_t receive) {
                from[receive] = message;
                if (message_of_[receive] == kNone) {
                    free = receive;
                } else {
                    receive_of[message_of_[receive]] = receive;
                    queue.push_back(message_of_[receive]);
                }
            });
            if (free == kNone) continue;
            for (std::size_t receive = free; receive != kNone;) {
                message_of_[receive] = from[receive];
                receive = receive_of[from[receive]];
            }
            return true;
        }
        return false;
    }

    const Arrivals& arrivals_;
    const Waits& waits_;
    std::vector<std::size_t> message_of_;  ///< by receive
    std::vector<std::size_t> alone_;
};

}  // namespace

WorstArrivals worst_arrivals(const Arrivals& arrivals) {
    const Waits waits(arrivals);
    const Matching matching(arrivals, waits);
    WorstArrivals worst;
    worst.held = static_cast<std::uint32_t>(matching.alone().size());
    const std::vector<std::uint64_t> taken = matching.reached_from(matching.alone());
    for (std::size_t receive = 0; receive < arrivals.taken.size(); ++receive)
        if ((taken[receive / 64] >> receive % 64 & 1U) != 0)
            worst.taken.push_back(arrivals.taken[receive]);
    for (std::size_t message = 0; message < arrivals.sent.size(); ++message) {
        const std::span<const std::uint64_t> row = waits.of(arrivals.sent[message]);
        bool goes = true;
        for (std::size_t word = 0; word < row.size(); ++word)
            goes = goes && (row[word] & ~taken[word]) == 0;
        if (goes) worst.sent.push_back(arrivals.sent[message]);
    }
    return worst;
}

}  // namespace ulc::sim
