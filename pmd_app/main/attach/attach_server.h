// SPDX-License-Identifier: BSD-3-Clause
// This file lets clients in: the unix socket, credentials, the handshake of abi/attach.h, the ends
// of clients. It runs on a separate thread, so that no client can delay the engine. A client that
// is late in the handshake is dropped at its deadline. Nothing here blocks on a client.
//
//   accept ─▶ kHello ─ Hello ▶ reserve, memfd, Offer ─▶ kMapping
//                ├ Hello(kUpgrade) ▶ Upgrader, close
//                └ Hello(kCounters) ▶ Offer, close          │ Mapped ▶ seal, admit, Ready
//                                                           ▼
//   kLeaving until the engine let go of the region ◀─ kAttached: EOF, or the process ends
//                                                     ▶ detach(kDied; kClosed after kBye)
//
// Floods: each pass takes a few connections and a few packets of each, and is charged to a budget
// of processor time; when it is used up the thread rests. Handshakes, the dear part, are charged to
// the user. One who has used up his share waits while clients of other users are there, or is
// refused where the wait would be longer than a client's; no user waits for his own clients, and
// root and the engine's user for none. A user has at most as many connections as are left for all
// others, and few that have said nothing yet.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/attach.h"
#include "base/units.h"
#include "main/attach/budget.h"
#include "main/attach/disposer.h"
#include "main/attach/listen_socket.h"
#include "main/attach/peer.h"
#include "main/attach/shared_region.h"
#include "main/attach/silent_clients.h"
#include "main/core/upgrader.h"
#include "main/engine_loop.h"
#include "main/hello.h"
#include "main/service/journal.h"
#include "main/service/limited_thread.h"

namespace ulc::daemon {

struct AttachOptions {
    std::string socket_path = abi::kDefaultSocketPath;
    /// Users that may attach, besides root and the engine's own user. All may if both lists are
    /// empty and allow_all is set.
    std::vector<uid_t> allow_uids;
    std::vector<gid_t> allow_gids;
    bool allow_all = false;
    bool upgrades = true;  ///< the core may be replaced
    HelloRules rules;
    std::uint32_t connections_max = 256;
    Nanos handshake_max = 5 * kSecond;
    Nanos handshakes_burst =
        500 * kMillisecond;  ///< processor time that a user's handshakes take at once
};

class AttachServer {
public:
    AttachServer(AttachOptions options, EngineLoop& loop, CounterPage& counters);
    ~AttachServer();  ///< stop()
    AttachServer(const AttachServer&) = delete;
    AttachServer& operator=(const AttachServer&) = delete;

    /// Takes the path (ListenSocket::open()) and starts the thread. Errors: those of
    /// ListenSocket::open(); why: what to do.
    Err start(std::string& why);
    /// Admits no further client, tells the engine that all clients ended, ends the thread. False:
    /// that thread does not end, and uses this object.
    bool stop();

private:
    enum class State : std::uint8_t { kHello, kMapping, kAttached, kLeaving };
    struct Connection;
    /// Names the owner of an epoll event.
    struct Watch {
        enum class Kind : std::uint8_t { kStop, kListener, kSocket, kProcess };
        Kind kind;
        Connection* connection = nullptr;
    };
    struct Connection {
        int socket = -1;
        int process = -1;  ///< pidfd; -1: not known
        State state = State::kHello;
        bool bye = false;
        bool parked = false;  ///< not read until its user may go on
        bool reserved = false;
        bool told = false;  ///< the engine knows of the end, and has let go of the socket
        Peer peer;
        Nanos connected_at = 0;  ///< CLOCK_BOOTTIME
        Nanos deadline = 0;
        engine::EndpointId endpoint = 0;
        SharedRegion region;
        Watch on_socket{Watch::Kind::kSocket, this};
        Watch on_process{Watch::Kind::kProcess, this};
    };
    struct User {
        bool trusted = false;  ///< root or the engine's own user
        std::uint32_t connections = 0;
        std::uint32_t parked = 0;
        std::uint32_t doorbells_left = 0;
        TimeBudget handshakes;
        SilentClients<Connection> silent{};  ///< in kHello and not parked
    };

    // --- attach_server.cc: connections from accept to end
    void thread();
    void rest();
    void on_event(const Watch& watch);
    [[nodiscard]] static std::uint32_t events_of(const Watch& watch);
    [[nodiscard]] bool add_watch(int fd, Watch& watch);
    void arm(Connection& connection);
    void accept_some();
    [[nodiscard]] int accept_one();
    void take_in(int socket);
    void pause_accepting(const std::string& why);
    void close_socket(int socket);
    [[nodiscard]] static bool in_handshake(const Connection& connection) noexcept {
        return connection.state == State::kHello || connection.state == State::kMapping;
    }
    void on_readable(Connection& connection);
    [[nodiscard]] bool read_doorbells(Connection& connection, std::uint32_t& most);
    void on_process_end(Connection& connection);
    [[nodiscard]] ssize_t receive(Connection& connection, void* data, std::size_t octets);
    void end(Connection& connection);
    /// The end of a client, for the engine; a call owns a copy.
    struct End {
        engine::EndpointId endpoint;
        engine::DetachReason reason;
    };
    [[nodiscard]] static End end_of(const Connection& connection) noexcept {
        return {connection.endpoint,
                connection.bye ? engine::DetachReason::kClosed : engine::DetachReason::kDied};
    }
    void release_socket(Connection& connection);
    void sweep(Nanos now);
    void end_late(Connection& connection);
    void count_silent();
    void forget_gone();
    [[nodiscard]] AllowList allow_list() const noexcept;
    [[nodiscard]] User& user_of(uid_t uid);
    void charge(User& user, Nanos spent);
    [[nodiscard]] Nanos wait_of(User& user, Nanos now);
    [[nodiscard]] bool park(Connection& connection, User& user, Nanos wait);
    void unpark(Connection& connection, User& user);
    void expect_hello(Connection& connection, User& user);
    [[nodiscard]] bool may_warn();  ///< a line about a client, by LineBudget
    [[nodiscard]] bool may_note();
    /// Returns what the journal shows of the client with each line about it.
    [[nodiscard]] static LogFields fields_of(const Connection& connection) noexcept;

    // --- attach_handshake.cc: what clients say
    static constexpr char kNoDescriptor[] =
        "the engine has no file descriptor left; raise its limit (ulimit -n)";
    static constexpr char kNoWatch[] =
        "the engine's user may watch no more descriptors; raise fs.epoll.max_user_watches";
    bool on_packet(Connection& connection, const char* data, std::size_t octets);
    bool on_hello(Connection& connection, const HelloRequest& request);
    bool watch_peer(Connection& connection);
    bool offer_region(Connection& connection, const abi::RegionLayout& layout);
    bool on_mapped(Connection& connection);
    bool serve_counters(Connection& connection);
    bool serve_streams(Connection& connection);
    void name_processes(std::span<abi::StreamRow> rows) const;
    bool begin_upgrade(Connection& connection);
    void refresh_rows();
    bool refuse(Connection& connection, Err error, const std::string& text);

    AttachOptions options_;
    EngineLoop& loop_;
    CounterPage& counters_;
    ListenSocket listener_;
    Upgrader upgrader_;
    std::unique_ptr<Disposer> disposer_;  ///< nullptr: a close cannot take long
    int epoll_fd_ = -1;
    int stop_fd_ = -1;
    int spare_fd_ = -1;  ///< given up for a moment to refuse a client when descriptors are used up
    Watch on_listener_{Watch::Kind::kListener, nullptr};
    Watch on_stop_{Watch::Kind::kStop, nullptr};
    bool stopping_ = false;
    bool ended_some_ = false;    ///< a connection may be ready to be forgotten
    Nanos accept_again_at_ = 0;  ///< 0: the listener is watched
    Nanos sweep_at_ = 0;
    Nanos doorbells_at_ = 0;
    Nanos rows_at_ = 0;  ///< when the rows of the counter page may be taken again
    std::vector<abi::EndpointRow> rows_;
    std::uint64_t silent_ = 0;    ///< clients ended for their silence that are not counted yet
    Nanos charged_to_users_ = 0;  ///< processor time, in this pass
    TimeBudget passes_;
    LineBudget warnings_;
    LineBudget notices_;
    LineBudget shortages_;
    std::unordered_map<uid_t, User> users_;
    std::vector<std::unique_ptr<Connection>> connections_;
    LimitedThread thread_;
};

}  // namespace ulc::daemon
