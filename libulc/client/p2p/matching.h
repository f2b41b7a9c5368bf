// SPDX-License-Identifier: BSD-3-Clause
// Matches messages to receives: (source or any, (tag & mask) equal), arrivals in the order of
// their first chunk, receives in the order in which they were posted.
//
//   posted      one list a named source, one for any source. The order of the heads that match
//               decides between them.
//   unexpected  one list a source, and one of all sources in arrival order. A message is in both.
//
// Short lists are walked. A walk past kWalkMax entries starts hashing, so that a message costs the
// same whatever else waits:
//
//   posted      receives by (source or any, tag & mask). A *shape* is a mask, with a named source
//               or any. A message is looked up once for each shape in use, and the receive with
//               the lowest order wins. Receives of a 17th shape are walked. Hashing ends when no
//               receive is posted.
//   unexpected  a *filing* is a hash table of all messages for the receives of one shape. It is
//               built when walks for its shape have passed as many messages as there are. The
//               fifth shape replaces the filing used longest ago. All end when no message is
//               unexpected.
//
// Hash tables grow with the most entries ever waiting and stay. Nothing else allocates. Without
// memory lists are walked.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "abi/placement.h"
#include "client/arrivals/arrival.h"
#include "client/p2p/buckets.h"
#include "client/p2p/request.h"

namespace ulc::client {

inline constexpr std::uint16_t kAnySource = 0xffff;

class Matcher {
public:
    static constexpr unsigned kWalkMax = 16;    ///< entries passed over before hashing starts
    static constexpr unsigned kShapesMax = 16;  ///< shapes of posted receives

    /// Sources 0 … ranks-1. False: out of memory.
    [[nodiscard]] bool begin_job(std::uint16_t ranks) noexcept;
    [[nodiscard]] std::uint16_t ranks() const noexcept {
        return static_cast<std::uint16_t>(sources_.size());
    }

    /// request.from: a source or kAnySource; tag, mask set. Gives it its order.
    void post(Request& request) noexcept;
    void unpost(Request& request) noexcept;
    /// The receive for a message, left in its list; nullptr: none.
    [[nodiscard]] Request* find_posted(std::uint16_t source, std::uint64_t tag) noexcept;
    /// The same, taken out of its list, unless it takes many messages.
    [[nodiscard]] Request* match_posted(std::uint16_t source, std::uint64_t tag) noexcept;
    /// Removes and returns the receive for a whole message of `octets` bytes, if that is all there
    /// is to do. nullptr: match_posted() decides. Fast if only receives that name the source are
    /// posted, and the first of them matches.
    [[nodiscard]] Request* match_first(std::uint16_t source, std::uint64_t tag,
                                       std::uint64_t octets) noexcept {
        Source& from = sources_[source];
        Request* request = from.posted.front();
        if (!posted_any_.empty() || hashes_posted_) return match_listed(source, tag, octets);
        if (request == nullptr || ((tag ^ request->tag) & request->mask) != 0 ||
            !takes_whole(*request, octets))
            return nullptr;
        if (request->capacity >= abi::kPlacedMin) --long_posted_;
        from.told = false;
        return from.posted.pop_front();
    }
    /// Removes and returns a receive that names `source` (kAnySource: one from any); nullptr if
    /// none is left.
    [[nodiscard]] Request* take_posted(std::uint16_t source) noexcept;

    void add_unexpected(Arrival& arrival) noexcept;
    void remove_unexpected(Arrival& arrival) noexcept;
    /// The first match, left in its lists; nullptr: none.
    [[nodiscard]] Arrival* find_unexpected(std::uint16_t from, std::uint64_t tag,
                                           std::uint64_t mask) noexcept;
    [[nodiscard]] Arrival* first_unexpected() const noexcept { return all_.front(); }
    [[nodiscard]] Arrival* first_unexpected(std::uint16_t source) const noexcept {
        return sources_[source].unexpected.front();
    }

    /// Tells whether some posted receive takes a message that a placer is asked about.
    [[nodiscard]] bool has_long() const noexcept { return long_posted_ > 0; }

    /// Calls tell(source) for each source that a posted receive names and for which it was not
    /// called since its last message, at most `limit` times; tell returns false to stop. Cost:
    /// sources with named receives now or at the last call.
    template <typename Tell>
    void each_awaited(unsigned limit, Tell tell) noexcept {
        for (Source* source = awaited_.front(); source != nullptr && limit > 0;) {
            Source& one = *source;
            source = AwaitedList::next(one);
            if (one.posted.empty()) {
                awaited_.remove(one);
                one.awaited_listed = false;
                continue;
            }
            if (one.told) continue;
            if (!tell(static_cast<std::uint16_t>(&one - sources_.data()))) return;
            one.told = true;
            --limit;
        }
    }
    /// Something of this source arrived.
    void heard(std::uint16_t source) noexcept { sources_[source].told = false; }

    // --- for tests
    [[nodiscard]] bool hashes_posted() const noexcept { return hashes_posted_; }
    [[nodiscard]] unsigned filings() const noexcept;

private:
    struct Source {
        RequestList posted;
        SourceArrivals unexpected;
        Links<Source> awaited;
        bool told = false;
        bool awaited_listed =
            false;  ///< in awaited_, where it stays until each_awaited() finds it without a receive
    };
    using AwaitedList = List<Source, &Source::awaited>;
    static constexpr std::uint8_t kNoShape = 0xff;

    struct Shape {
        std::uint64_t mask = 0;
        std::uint32_t posted = 0;
        bool any = false;
    };
    struct Filing {
        std::uint64_t mask = 0;
        std::uint64_t used_at = 0;
        bool any = false;
        bool built = false;
        Buckets<Filed, &Filed::links> buckets;
    };

    /// Tells whether the message fills one contiguous buffer, and the receive then ends.
    [[nodiscard]] static bool takes_whole(const Request& request, std::uint64_t octets) noexcept {
        return !request.many && request.pieces == nullptr && octets <= request.capacity;
    }
    void remove_posted(Request& request) noexcept;
    [[nodiscard]] Request* match_listed(std::uint16_t source, std::uint64_t tag,
                                        std::uint64_t octets) noexcept;
    [[nodiscard]] Request* find_posted_long(std::uint16_t source, std::uint64_t tag) noexcept;
    [[nodiscard]] Request* find_hashed(std::uint16_t source, std::uint64_t tag) noexcept;
    [[nodiscard]] bool start_hashing() noexcept;
    void hash(Request& request) noexcept;
    void unhash(Request& request) noexcept;
    [[nodiscard]] std::uint8_t shape_of(const Request& request) noexcept;
    [[nodiscard]] Arrival* walk_unexpected(std::uint16_t from, std::uint64_t tag,
                                           std::uint64_t mask) noexcept;
    [[nodiscard]] Filing* filing_of(bool any, std::uint64_t mask) noexcept;
    void build_filing(bool any, std::uint64_t mask) noexcept;
    void fill(Filing& filing) noexcept;
    void file(Arrival& arrival) noexcept;
    void unfile(Arrival& arrival) noexcept;

    std::vector<Source> sources_;
    RequestList posted_any_;
    AllArrivals all_;
    AwaitedList awaited_;
    std::uint64_t order_ = 0;
    std::uint32_t long_posted_ = 0;  ///< receives of abi::kPlacedMin octets and more
    bool hashes_posted_ = false;
    bool files_ = false;  ///< some filing is built

    std::uint32_t hashed_count_ = 0;
    std::uint32_t unexpected_count_ = 0;
    std::uint64_t passed_over_ =
        0;  ///< unexpected messages, by walks since the last filing was built
    std::uint64_t searches_ = 0;
    Buckets<Request, &Request::hashed> hashed_;
    List<Request, &Request::hashed> shapeless_;
    std::array<Shape, kShapesMax> shapes_{};
    std::uint32_t shapes_used_ = 0;  ///< bit i: shapes_[i].posted > 0
    std::array<Filing, kFilings> filings_{};
};

}  // namespace ulc::client
