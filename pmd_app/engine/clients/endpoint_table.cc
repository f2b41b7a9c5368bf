// SPDX-License-Identifier: BSD-3-Clause
#include "engine/clients/endpoint_table.h"

#include "base/check.h"
#include "engine/core.h"

namespace ulc::engine {
namespace {

constexpr std::uint32_t kGenerationMask = (1U << (31 - kHandleIndexBits)) - 1;

}  // namespace

EndpointTable::EndpointTable(std::uint32_t endpoints_max, seal::Tokens& tokens)
    : places_(endpoints_max), generations_(endpoints_max) {
    ULC_CHECK(endpoints_max > 0 && endpoints_max <= kHandleIndexMask + 1);
    for (auto& generation : generations_)
        generation = static_cast<std::uint32_t>(tokens.next()) & kGenerationMask;
    active_.reserve(endpoints_max);
}

EndpointTable::~EndpointTable() {
    for (const auto& endpoint : places_)
        if (endpoint != nullptr) endpoint->sends().abort(endpoint->net().port().pool);
}

EndpointId EndpointTable::next_handle() noexcept {
    for (std::uint32_t n = 0; n < places(); ++n) {
        const std::uint32_t place = (next_place_ + n) % places();
        if (places_[place] != nullptr) continue;
        next_place_ = (place + 1) % places();
        std::uint32_t& generation = generations_[place];
        generation = (generation + 1) & kGenerationMask;
        if (generation == 0) generation = 1;  // handle 0 names none
        return generation << kHandleIndexBits | place;
    }
    return 0;
}

void EndpointTable::put(std::unique_ptr<Endpoint> endpoint) {
    std::unique_ptr<Endpoint>& place = places_[endpoint->handle() & kHandleIndexMask];
    ULC_CHECK(place == nullptr);
    place = std::move(endpoint);
}

void EndpointTable::admit(Endpoint& endpoint) {
    active_.push_back(&endpoint);
    endpoint.user().active.push_back(&endpoint);
}

void EndpointTable::remove(Endpoint& endpoint) {
    std::erase(active_, &endpoint);
    std::erase(endpoint.user().active, &endpoint);
    places_[endpoint.handle() & kHandleIndexMask].reset();
}

}  // namespace ulc::engine
