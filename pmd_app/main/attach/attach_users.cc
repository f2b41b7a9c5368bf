// SPDX-License-Identifier: BSD-3-Clause
// The share of the engine's time that the handshakes of one user take from others.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "main/attach/attach_server.h"
#include "main/clock.h"

namespace ulc::daemon {
namespace {

// On a machine so slow that one handshake takes 0.1 s a flood costs more, and a client whose user
// has used up his budget still gets an answer before it gives up after 5 s.
constexpr std::uint32_t kHandshakesPermille = 10;
constexpr Nanos kHandshakesWaitMax = kSecond;
constexpr std::uint32_t kParkedMax = 64;  ///< most of one user

}  // namespace

AttachServer::User& AttachServer::user_of(uid_t uid) {
    return users_
        .try_emplace(uid, User{uid == 0 || uid == geteuid(), 0, 0, 0,
                               TimeBudget(kHandshakesPermille, options_.handshakes_burst,
                                          kHandshakesWaitMax)})
        .first->second;
}

void AttachServer::charge(User& user, Nanos spent) {
    user.handshakes.charge(spent);
    charged_to_users_ += spent;
}

/// Returns how long the user's next handshake has to wait. Others, for whom the budget is, are
/// those that have a connection, in the handshake or attached.
Nanos AttachServer::wait_of(User& user, Nanos now) {
    const bool alone = connections_.size() <= user.connections;
    return user.trusted || alone ? 0 : user.handshakes.wait(now);
}

/// Leaves a client aside until its user may go on. False: it was refused, because those before it
/// are many, or take longer than a client waits.
bool AttachServer::park(Connection& connection, User& user, Nanos wait) {
    user.silent.remove(connection);
    if (user.parked >= kParkedMax || (user.parked + Nanos{1}) * wait > options_.handshake_max / 2)
        return refuse(connection, Err::kLimit,
                      fmt::format("user {} attaches faster than the engine lets him while others "
                                  "are there; try again in {} s, or raise --attach-burst",
                                  connection.peer.uid, (user.parked * wait + wait) / kSecond + 1));
    ++user.parked;
    connection.parked = true;
    arm(connection);
    const LogFields fields = fields_of(connection);
    if (may_note())
        spdlog::info("client {} of user {} waits for {} ms: see --attach-burst",
                     connection.peer.pid, connection.peer.uid, wait / kMillisecond + 1);
    return true;
}

void AttachServer::unpark(Connection& connection, User& user) {
    if (!connection.parked) return;
    --user.parked;
    connection.parked = false;
}

/// Takes a client that has said nothing into the user's list of those. One too many ends the oldest
/// of them.
void AttachServer::expect_hello(Connection& connection, User& user) {
    Connection* oldest = user.silent.add(connection);
    if (oldest == nullptr) return;
    refuse(
        *oldest, Err::kLimit,
        fmt::format("this client said nothing while {} more of user {} connected; connect again, "
                    "and say hello at once",
                    user.silent.kMax, oldest->peer.uid));
    ++silent_;
    end(*oldest);
}

/// Ends a client that is attached no more, or whose handshake took too long.
void AttachServer::end_late(Connection& connection) {
    if (in_handshake(connection)) {
        ++silent_;
        const LogFields fields = fields_of(connection);
        if (may_warn())
            spdlog::warn("client {} of user {} did not finish attaching within {} s",
                         connection.peer.pid, connection.peer.uid,
                         options_.handshake_max / kSecond);
    }
    end(connection);
}

/// Adds the clients that were ended for their silence to the counters, which the engine's thread
/// writes.
void AttachServer::count_silent() {
    if (silent_ == 0) return;
    loop_.calls().run([&](Core& core, Nanos) {
        core.counters().add(Counter::clients_silent, std::exchange(silent_, 0));
    });
}

}  // namespace ulc::daemon
