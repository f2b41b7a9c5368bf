// SPDX-License-Identifier: BSD-3-Clause
#include "client/p2p/matching.h"

#include <bit>
#include <new>

namespace ulc::client {
namespace {

bool matches(std::uint64_t tag, const Request& request) noexcept {
    return ((tag ^ request.tag) & request.mask) == 0;
}

bool matches(const Arrival& arrival, std::uint16_t from, std::uint64_t tag,
             std::uint64_t mask) noexcept {
    return (from == kAnySource || arrival.source == from) && ((arrival.tag ^ tag) & mask) == 0;
}

/// The first match among the first `walk` entries, which counts down. nullptr and walk > 0: there
/// is none.
Request* first_match(const RequestList& list, std::uint64_t tag, std::uint64_t& walk) noexcept {
    for (Request* request = list.front(); request != nullptr;
         request = RequestList::next(*request)) {
        if (matches(tag, *request)) return request;
        if (--walk == 0) return nullptr;
    }
    return nullptr;
}

Request* earlier(Request* one, Request* other) noexcept {
    if (one == nullptr) return other;
    return other != nullptr && other->order < one->order ? other : one;
}

}  // namespace

bool Matcher::begin_job(std::uint16_t ranks) noexcept {
    try {
        sources_ = std::vector<Source>(ranks);
        awaited_ = {};
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

// ---------------------------------------------------------------- posted receives

void Matcher::post(Request& request) noexcept {
    request.order = order_++;
    if (request.capacity >= abi::kPlacedMin) ++long_posted_;
    if (request.from == kAnySource) {
        posted_any_.push_back(request);
    } else {
        Source& source = sources_[request.from];
        if (!source.awaited_listed) {
            source.awaited_listed = true;
            awaited_.push_back(source);
        }
        source.posted.push_back(request);
    }
    if (hashes_posted_) hash(request);
}

void Matcher::unpost(Request& request) noexcept { remove_posted(request); }

void Matcher::remove_posted(Request& request) noexcept {
    if (hashes_posted_) unhash(request);
    if (request.capacity >= abi::kPlacedMin) --long_posted_;
    RequestList& list = request.from == kAnySource ? posted_any_ : sources_[request.from].posted;
    list.remove(request);
}

Request* Matcher::find_posted(std::uint16_t source, std::uint64_t tag) noexcept {
    Request* named = sources_[source].posted.front();
    if (!posted_any_.empty() || (named != nullptr && !matches(tag, *named)))
        return find_posted_long(source, tag);
    return named;
}

Request* Matcher::find_posted_long(std::uint16_t source, std::uint64_t tag) noexcept {
    if (hashes_posted_) return find_hashed(source, tag);
    for (std::uint64_t allowed = kWalkMax;; allowed = UINT64_MAX) {
        std::uint64_t walk = allowed;
        Request* named = first_match(sources_[source].posted, tag, walk);
        Request* any = walk > 0 ? first_match(posted_any_, tag, walk) : nullptr;
        if (walk > 0) return earlier(named, any);
        if (start_hashing()) return find_hashed(source, tag);
    }
}

Request* Matcher::match_posted(std::uint16_t source, std::uint64_t tag) noexcept {
    Request* request = find_posted(source, tag);
    if (request != nullptr && !request->many) remove_posted(*request);
    return request;
}

// match_first() among receives of all kinds.
Request* Matcher::match_listed(std::uint16_t source, std::uint64_t tag,
                               std::uint64_t octets) noexcept {
    Request* request = find_posted(source, tag);
    if (request == nullptr || !takes_whole(*request, octets)) return nullptr;
    remove_posted(*request);
    sources_[source].told = false;
    return request;
}

Request* Matcher::take_posted(std::uint16_t source) noexcept {
    Request* request = source == kAnySource ? posted_any_.front() : sources_[source].posted.front();
    if (request != nullptr) remove_posted(*request);
    return request;
}

Request* Matcher::find_hashed(std::uint16_t source, std::uint64_t tag) noexcept {
    using Chain = decltype(hashed_)::Chain;
    Request* best = nullptr;
    for (std::uint32_t left = shapes_used_; left != 0; left &= left - 1) {
        const auto index = static_cast<std::uint8_t>(std::countr_zero(left));
        const Shape& shape = shapes_[index];
        const std::uint16_t from = shape.any ? kAnySource : source;
        Request* request = hashed_.chain(tag & shape.mask, from).front();
        while (request != nullptr &&
               (request->shape != index || request->from != from || !matches(tag, *request)))
            request = Chain::next(*request);
        best = earlier(best, request);
    }
    for (Request* request = shapeless_.front(); request != nullptr; request = Chain::next(*request))
        if ((request->from == kAnySource || request->from == source) && matches(tag, *request))
            best = earlier(best, request);
    return best;
}

// All posted receives, list by list: those of one shape and key are in one list, so they keep their
// order.
bool Matcher::start_hashing() noexcept {
    std::size_t posted = 0;
    const auto each = [this](auto&& visit) {
        for (Source* source = awaited_.front(); source != nullptr;
             source = AwaitedList::next(*source))
            for (Request* r = source->posted.front(); r != nullptr; r = RequestList::next(*r))
                visit(*r);
        for (Request* r = posted_any_.front(); r != nullptr; r = RequestList::next(*r))
            visit(*r);
    };
    each([&](Request&) { ++posted; });
    hashes_posted_ = hashed_.reset(posted);
    hashed_count_ = 0;
    shapes_ = {};
    shapes_used_ = 0;
    shapeless_ = {};
    if (hashes_posted_) each([this](Request& request) { hash(request); });
    return hashes_posted_;
}

std::uint8_t Matcher::shape_of(const Request& request) noexcept {
    const bool any = request.from == kAnySource;
    for (std::uint32_t left = shapes_used_; left != 0; left &= left - 1) {
        const auto index = static_cast<std::uint8_t>(std::countr_zero(left));
        if (shapes_[index].mask == request.mask && shapes_[index].any == any) return index;
    }
    const auto free = static_cast<std::uint8_t>(std::countr_one(shapes_used_));
    if (free >= kShapesMax) return kNoShape;
    shapes_[free] = {request.mask, 0, any};
    shapes_used_ |= 1U << free;
    return free;
}

void Matcher::hash(Request& request) noexcept {
    if (hashed_.crowded(hashed_count_)) {
        // All are hashed again, in their order, from the lists, where this one is already.
        static_cast<void>(start_hashing());
        return;
    }
    ++hashed_count_;
    request.shape = shape_of(request);
    if (request.shape == kNoShape) {
        shapeless_.push_back(request);
        return;
    }
    ++shapes_[request.shape].posted;
    hashed_.chain(request.tag & request.mask, request.from).push_back(request);
}

void Matcher::unhash(Request& request) noexcept {
    if (request.shape == kNoShape) {
        shapeless_.remove(request);
    } else {
        hashed_.chain(request.tag & request.mask, request.from).remove(request);
        if (--shapes_[request.shape].posted == 0) shapes_used_ &= ~(1U << request.shape);
    }
    if (--hashed_count_ == 0) hashes_posted_ = false;
}

// ---------------------------------------------------------------- unexpected messages

void Matcher::add_unexpected(Arrival& arrival) noexcept {
    all_.push_back(arrival);
    sources_[arrival.source].unexpected.push_back(arrival);
    arrival.unexpected = true;
    ++unexpected_count_;
    if (files_) file(arrival);
}

void Matcher::remove_unexpected(Arrival& arrival) noexcept {
    all_.remove(arrival);
    sources_[arrival.source].unexpected.remove(arrival);
    arrival.unexpected = false;
    --unexpected_count_;
    if (files_) unfile(arrival);
}

Arrival* Matcher::find_unexpected(std::uint16_t from, std::uint64_t tag,
                                  std::uint64_t mask) noexcept {
    Arrival* first = from == kAnySource ? all_.front() : sources_[from].unexpected.front();
    if (first == nullptr || ((first->tag ^ tag) & mask) == 0) return first;
    if (!files_) return walk_unexpected(from, tag, mask);
    Filing* filing = filing_of(from == kAnySource, mask);
    if (filing == nullptr) return walk_unexpected(from, tag, mask);
    filing->used_at = ++searches_;
    using Chain = decltype(filing->buckets)::Chain;
    Filed* filed = filing->buckets.chain(tag & mask, from).front();
    while (filed != nullptr && !matches(*filed->arrival, from, tag, mask))
        filed = Chain::next(*filed);
    return filed == nullptr ? nullptr : filed->arrival;
}

Arrival* Matcher::walk_unexpected(std::uint16_t from, std::uint64_t tag,
                                  std::uint64_t mask) noexcept {
    const bool any = from == kAnySource;
    std::uint64_t passed = 0;
    Arrival* found = any ? all_.front() : sources_[from].unexpected.front();
    for (; found != nullptr && ((found->tag ^ tag) & mask) != 0; ++passed)
        found = any ? AllArrivals::next(*found) : SourceArrivals::next(*found);
    if (passed <= kWalkMax) return found;
    passed_over_ += passed;
    if (passed_over_ >= unexpected_count_) build_filing(any, mask);
    return found;
}

Matcher::Filing* Matcher::filing_of(bool any, std::uint64_t mask) noexcept {
    for (Filing& filing : filings_)
        if (filing.built && filing.mask == mask && filing.any == any) return &filing;
    return nullptr;
}

void Matcher::build_filing(bool any, std::uint64_t mask) noexcept {
    passed_over_ = 0;
    Filing* chosen = &filings_[0];
    for (Filing& filing : filings_) {
        if (!filing.built) {
            chosen = &filing;
            break;
        }
        if (filing.used_at < chosen->used_at) chosen = &filing;
    }
    chosen->mask = mask;
    chosen->any = any;
    chosen->used_at = ++searches_;
    fill(*chosen);
}

void Matcher::fill(Filing& filing) noexcept {
    const auto index = static_cast<std::size_t>(&filing - filings_.data());
    filing.built = filing.buckets.reset(unexpected_count_);
    files_ = true;
    if (!filing.built) return;
    for (Arrival* arrival = all_.front(); arrival != nullptr;
         arrival = AllArrivals::next(*arrival)) {
        Filed& filed = arrival->filed[index];
        filed.arrival = arrival;
        filing.buckets.chain(arrival->tag & filing.mask, filing.any ? kAnySource : arrival->source)
            .push_back(filed);
    }
}

void Matcher::file(Arrival& arrival) noexcept {
    for (std::size_t index = 0; index < kFilings; ++index) {
        Filing& filing = filings_[index];
        if (!filing.built) continue;
        if (filing.buckets.crowded(unexpected_count_)) {
            fill(filing);  // with this one, which is in the lists
            continue;
        }
        arrival.filed[index].arrival = &arrival;
        filing.buckets.chain(arrival.tag & filing.mask, filing.any ? kAnySource : arrival.source)
            .push_back(arrival.filed[index]);
    }
}

void Matcher::unfile(Arrival& arrival) noexcept {
    for (std::size_t index = 0; index < kFilings; ++index) {
        Filing& filing = filings_[index];
        if (!filing.built) continue;
        filing.buckets.chain(arrival.tag & filing.mask, filing.any ? kAnySource : arrival.source)
            .remove(arrival.filed[index]);
    }
    if (unexpected_count_ != 0) return;
    for (Filing& filing : filings_)
        filing.built = false;
    files_ = false;
    passed_over_ = 0;
}

unsigned Matcher::filings() const noexcept {
    unsigned built = 0;
    for (const Filing& filing : filings_)
        built += filing.built ? 1U : 0U;
    return built;
}

}  // namespace ulc::client
