// Lets clients in: the unix socket, credentials, the handshake of abi/attach.h, and the news of clients that end. Runs on a
// thread of its own, so that no client can delay the engine; a client that dawdles in the handshake is dropped at its
// deadline, and nothing here ever blocks on one.
//
//   accept ─▶ kHello ─ Hello ▶ reserve, memfd, Offer ─▶ kMapping ─ Mapped ▶ seal, admit, Ready ─▶ kAttached
//                └ Hello(kCounters) ▶ Offer, close                            kAttached ─ EOF ▶ detach(kDied, or kClosed after kBye)
//                                                                             ─▶ kLeaving until the engine let go of the region
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "abi/attach.h"
#include "base/units.h"
#include "main/engine_loop.h"
#include "main/shared_region.h"

namespace ulc::daemon {

struct AttachOptions {
    std::string socket_path = abi::kDefaultSocketPath;
    std::vector<uid_t>
        allow_uids;  ///< besides root and the engine's own user; both lists empty and allow_all: everybody
    std::vector<gid_t> allow_gids;
    bool allow_all = false;
    abi::RegionSizes sizes;         ///< given when a client asks for 0
    abi::RegionSizes sizes_max;     ///< more is cut to this
    std::vector<std::string> nets;  ///< names, by index; a client that names none gets the first
    std::uint32_t connections_max = 256;
    Nanos handshake_max = 5 * kSecond;
};

class AttachServer {
public:
    AttachServer(AttachOptions options, EngineLoop& loop, CounterPage& counters);
    ~AttachServer();  ///< stop()
    AttachServer(const AttachServer&) = delete;
    AttachServer& operator=(const AttachServer&) = delete;

    /// Binds the socket (removing one that a crashed engine left) and starts the thread. Errors: kInvalid (path too long, or
    /// an engine lives there), kPermission, kSystem; why: what to do.
    Err start(std::string& why);
    /// Takes nobody in any more, tells the engine that all clients ended, ends the thread.
    void stop();

private:
    enum class State : std::uint8_t { kHello, kMapping, kAttached, kLeaving };
    struct Connection {
        int socket = -1;
        State state = State::kHello;
        bool bye = false;
        pid_t pid = 0;
        Nanos deadline = 0;
        engine::EndpointId endpoint = 0;
        bool reserved = false;
        SharedRegion region;
    };

    Err bind_socket(std::string& why);
    void thread();
    void accept_all();
    void on_readable(Connection& connection);
    bool on_packet(Connection& connection, const char* data, std::size_t octets);
    bool on_hello(Connection& connection, const abi::Hello& hello);
    bool on_mapped(Connection& connection, const abi::Mapped& mapped);
    bool serve_counters(Connection& connection);
    bool refuse(Connection& connection, Err error, const std::string& text);
    [[nodiscard]] bool allowed(int socket, pid_t& pid) const;
    [[nodiscard]] Result<std::uint32_t> net_of(const abi::Hello& hello) const;
    [[nodiscard]] std::string no_such_net(const abi::Hello& hello) const;
    [[nodiscard]] abi::RegionSizes sizes_for(const abi::RegionSizes& wanted) const;
    void end(Connection& connection);
    void sweep();

    AttachOptions options_;
    EngineLoop& loop_;
    CounterPage& counters_;
    int listener_ = -1;
    int epoll_fd_ = -1;
    int stop_fd_ = -1;
    bool stopping_ = false;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::thread thread_;
};

}  // namespace ulc::daemon
