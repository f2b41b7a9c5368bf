// SPDX-License-Identifier: BSD-3-Clause
// The endpoints of an engine, by handle, and those that have turns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/units.h"
#include "engine/clients/endpoint.h"
#include "seal/tokens.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

class EndpointTable {
public:
    EndpointTable(std::uint32_t endpoints_max, seal::Tokens& tokens);
    ~EndpointTable();

    /// nullptr: that one is gone.
    [[nodiscard]] Endpoint* find(EndpointId handle) const noexcept {
        const std::uint32_t index = handle & kHandleIndexMask;
        if (index >= places_.size()) return nullptr;
        Endpoint* endpoint = places_[index].get();
        return endpoint != nullptr && endpoint->handle() == handle ? endpoint : nullptr;
    }
    /// Those that were admitted and are not gone.
    [[nodiscard]] std::span<Endpoint* const> active() const noexcept { return active_; }

    /// Returns the handle of a new endpoint; 0: the table is full. Places are given in turn: the
    /// handle of an endpoint that is gone meets another endpoint late.
    [[nodiscard]] EndpointId next_handle() noexcept;
    /// Puts an endpoint in its place, which is free.
    void put(std::unique_ptr<Endpoint> endpoint);
    /// Gives an endpoint turns.
    void admit(Endpoint& endpoint);
    /// Takes an endpoint out, and ends it.
    void remove(Endpoint& endpoint);

    // --- for its state
    [[nodiscard]] std::uint32_t places() const noexcept {
        return static_cast<std::uint32_t>(places_.size());
    }
    /// nullptr: the place is free.
    [[nodiscard]] Endpoint* at(std::uint32_t place) const noexcept { return places_[place].get(); }
    void set_active(std::vector<Endpoint*> active) noexcept { active_ = std::move(active); }
    void fields(state::Archive& archive);

private:
    std::vector<std::unique_ptr<Endpoint>> places_;
    std::vector<std::uint32_t> generations_;  ///< by place: the last one given
    std::uint32_t next_place_ = 0;            ///< the first that next_handle() checks
    std::vector<Endpoint*> active_;
};

}  // namespace ulc::engine
