// Which message goes to which receive: (source or any, (tag & mask) equal), arrivals in the order of their first chunk,
// receives in the order in which they were posted.
//
//   posted      one list a named source, one for any source; `order` decides between the two heads that match
//   unexpected  one list a source, one of all sources in arrival order; a message is in both
//
// So a receive that names its source looks at that source's messages only, and a message at that source's receives and
// at those from any. Cost: the entries passed over.
#pragma once

#include <cstdint>
#include <vector>

#include "client/arrival.h"
#include "client/request.h"

namespace ulc::client {

inline constexpr std::uint16_t kAnySource = 0xffff;

class Matcher {
public:
    /// Sources 0 … ranks-1. False: out of memory.
    [[nodiscard]] bool begin_job(std::uint16_t ranks) noexcept;
    [[nodiscard]] std::uint16_t ranks() const noexcept {
        return static_cast<std::uint16_t>(sources_.size());
    }

    /// request.from: a source or kAnySource; tag, mask set. Gives it its order.
    void post(Request& request) noexcept;
    void unpost(Request& request) noexcept;
    /// The receive for a message, left in its list; nullptr: none.
    [[nodiscard]] Request* find_posted(std::uint16_t source, std::uint64_t tag) const noexcept;
    /// The same, taken out of its list.
    [[nodiscard]] Request* match_posted(std::uint16_t source, std::uint64_t tag) noexcept;
    /// Removes and gives any receive that names `source` (kAnySource: one from any); nullptr: none left.
    [[nodiscard]] Request* take_posted(std::uint16_t source) noexcept;

    void add_unexpected(Arrival& arrival) noexcept;
    void remove_unexpected(Arrival& arrival) noexcept;
    /// The first match, left in its lists; nullptr: none.
    [[nodiscard]] Arrival* find_unexpected(std::uint16_t from, std::uint64_t tag,
                                           std::uint64_t mask) const noexcept;
    [[nodiscard]] Arrival* first_unexpected() const noexcept { return all_.front(); }

    /// Messages of `source` that are still coming.
    [[nodiscard]] OpenArrivals& open(std::uint16_t source) noexcept {
        return sources_[source].open;
    }

    /// Calls tell(source) for each source that a posted receive names and that was not told since its last message, at
    /// most `limit`; tell returns false to stop. Cost: sources with named receives.
    template <typename Tell>
    void each_awaited(unsigned limit, Tell tell) noexcept {
        for (Source* source = awaited_.front(); source != nullptr && limit > 0;
             source = AwaitedList::next(*source)) {
            if (source->told) continue;
            if (!tell(static_cast<std::uint16_t>(source - sources_.data()))) return;
            source->told = true;
            --limit;
        }
    }
    /// Something of this source arrived.
    void heard(std::uint16_t source) noexcept { sources_[source].told = false; }

private:
    struct Source {
        RequestList posted;
        SourceArrivals unexpected;
        OpenArrivals open;
        Links<Source> awaited;
        bool told = false;
    };
    using AwaitedList = List<Source, &Source::awaited>;

    void remove_posted(Request& request) noexcept;

    std::vector<Source> sources_;
    RequestList posted_any_;
    AllArrivals all_;
    AwaitedList awaited_;
    std::uint64_t order_ = 0;
};

}  // namespace ulc::client
