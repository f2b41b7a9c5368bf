// SPDX-License-Identifier: BSD-3-Clause
// The clients of one user that have connected and said nothing yet. They are few, since a client
// speaks as soon as it has connected. One beyond the bound ends the oldest, so that no number of
// silent clients keeps one that speaks out.
#pragma once

#include <cstddef>
#include <vector>

namespace ulc::daemon {

template <typename Client>
class SilentClients {
public:
    static constexpr std::size_t kMax = 64;

    /// Adds a client that is not here yet. Returns the oldest, which is here no more and has to
    /// end; nullptr: none.
    [[nodiscard]] Client* add(Client& client) {
        Client* oldest = nullptr;
        if (clients_.size() == kMax) {
            oldest = clients_.front();
            clients_.erase(clients_.begin());
        }
        clients_.push_back(&client);
        return oldest;
    }
    /// Removes a client, which has spoken or ended. Nothing happens if it is not here.
    void remove(const Client& client) noexcept { std::erase(clients_, &client); }

private:
    std::vector<Client*> clients_;  ///< the oldest first
};

}  // namespace ulc::daemon
