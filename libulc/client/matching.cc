#include "client/matching.h"

#include <new>

namespace ulc::client {
namespace {

bool matches(std::uint64_t tag, const Request& request) noexcept {
    return ((tag ^ request.tag) & request.mask) == 0;
}

Request* first_match(const RequestList& list, std::uint64_t tag) noexcept {
    for (Request* request = list.front(); request != nullptr; request = RequestList::next(*request))
        if (matches(tag, *request)) return request;
    return nullptr;
}

}  // namespace

bool Matcher::begin_job(std::uint16_t ranks) noexcept {
    try {
        sources_ = std::vector<Source>(ranks);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

void Matcher::post(Request& request) noexcept {
    request.order = order_++;
    if (request.from == kAnySource) {
        posted_any_.push_back(request);
        return;
    }
    Source& source = sources_[request.from];
    if (source.posted.empty()) awaited_.push_back(source);
    source.posted.push_back(request);
}

void Matcher::unpost(Request& request) noexcept { remove_posted(request); }

void Matcher::remove_posted(Request& request) noexcept {
    if (request.from == kAnySource) {
        posted_any_.remove(request);
        return;
    }
    Source& source = sources_[request.from];
    source.posted.remove(request);
    if (source.posted.empty()) awaited_.remove(source);
}

Request* Matcher::find_posted(std::uint16_t source, std::uint64_t tag) const noexcept {
    Request* named = first_match(sources_[source].posted, tag);
    Request* any = first_match(posted_any_, tag);
    return named == nullptr || (any != nullptr && any->order < named->order) ? any : named;
}

Request* Matcher::match_posted(std::uint16_t source, std::uint64_t tag) noexcept {
    Request* request = find_posted(source, tag);
    if (request != nullptr) remove_posted(*request);
    return request;
}

Request* Matcher::take_posted(std::uint16_t source) noexcept {
    Request* request = source == kAnySource ? posted_any_.front() : sources_[source].posted.front();
    if (request != nullptr) remove_posted(*request);
    return request;
}

void Matcher::add_unexpected(Arrival& arrival) noexcept {
    all_.push_back(arrival);
    sources_[arrival.source].unexpected.push_back(arrival);
    arrival.unexpected = true;
}

void Matcher::remove_unexpected(Arrival& arrival) noexcept {
    all_.remove(arrival);
    sources_[arrival.source].unexpected.remove(arrival);
    arrival.unexpected = false;
}

Arrival* Matcher::find_unexpected(std::uint16_t from, std::uint64_t tag,
                                  std::uint64_t mask) const noexcept {
    if (from == kAnySource) {
        for (Arrival* a = all_.front(); a != nullptr; a = AllArrivals::next(*a))
            if (((a->tag ^ tag) & mask) == 0) return a;
        return nullptr;
    }
    for (Arrival* a = sources_[from].unexpected.front(); a != nullptr; a = SourceArrivals::next(*a))
        if (((a->tag ^ tag) & mask) == 0) return a;
    return nullptr;
}

}  // namespace ulc::client
