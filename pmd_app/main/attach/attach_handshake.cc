// SPDX-License-Identifier: BSD-3-Clause
// The attach server's side of the handshake (abi/attach.h): what each packet of a client leads to.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <spdlog/spdlog.h>

#include "main/attach/attach_server.h"
#include "main/hello.h"

namespace ulc::daemon {
namespace {

constexpr Nanos kRowsEvery = 100 * kMillisecond;
constexpr char kNoRound[] = "the engine is stopping, or its thread is stuck; its log says which";

/// One packet with an optional descriptor. Never blocks; false: the client is not listening.
bool send_packet(int socket, const void* data, std::size_t octets, int fd = -1) {
    iovec part{const_cast<void*>(data), octets};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(octets);
}

/// An Interrupt of a client with this socket. One that does not read its socket is not interrupted.
void send_upcall(void* context) {
    const unsigned char octet = abi::kUpcall;
    const auto socket = static_cast<int>(reinterpret_cast<std::intptr_t>(context));
    static_cast<void>(send(socket, &octet, sizeof octet, MSG_DONTWAIT | MSG_NOSIGNAL));
}

engine::Interrupt upcall_to(int socket) {
    return {send_upcall, reinterpret_cast<void*>(std::intptr_t{socket})};
}

}  // namespace

bool AttachServer::on_packet(Connection& connection, const char* data, std::size_t octets) {
    switch (connection.state) {
        case State::kHello: {
            HelloRequest request;
            std::string why;
            const Err error = judge_hello(options_.rules, data, octets, request, why);
            if (error != Err::kOk) return refuse(connection, error, why);
            return on_hello(connection, request);
        }
        case State::kMapping:
            return is_mapped(data, octets) && on_mapped(connection);
        case State::kAttached:
        case State::kLeaving:
            return true;
    }
    return false;
}

bool AttachServer::refuse(Connection& connection, Err error, const std::string& text) {
    const LogFields fields = fields_of(connection);
    if (may_warn())
        spdlog::warn("client {} of user {} refused: {}", connection.peer.pid, connection.peer.uid,
                     text);
    auto offer = reply_with<abi::Offer>(error, text);
    offer.abi_version = abi::kAbiVersion;
    static_cast<void>(send_packet(connection.socket, &offer, sizeof offer));
    return false;
}

bool AttachServer::on_hello(Connection& connection, const HelloRequest& request) {
    if (request.kind == abi::HelloKind::kCounters) return serve_counters(connection);
    if (request.kind == abi::HelloKind::kStreams) return serve_streams(connection);
    if (request.kind == abi::HelloKind::kUpgrade) return begin_upgrade(connection);
    if (!watch_peer(connection)) return false;

    struct Reservation {
        Result<engine::EndpointId> endpoint = Err::kClosed;
        std::string why;
    };
    const auto made = std::make_shared<Reservation>();
    const Peer& peer = connection.peer;
    const engine::Claimant claimant{peer.uid, request.layout.region_octets,
                                    static_cast<std::uint32_t>(peer.pid), peer.start_ticks};
    const bool ran = loop_.calls().run(
        [made, claimant, net = request.net](Core& core, Nanos) {
            made->endpoint = core.reserve(net, claimant, made->why);
        },
        EngineCalls::kCallMax,
        [made](Core& core, Nanos now) {
            if (made->endpoint)
                core.detach(made->endpoint.value(), engine::DetachReason::kDied, now);
        });
    if (!ran) return refuse(connection, Err::kClosed, kNoRound);
    if (!made->endpoint) return refuse(connection, made->endpoint.error(), made->why);
    connection.endpoint = made->endpoint.value();
    connection.reserved = true;
    return offer_region(connection, request.layout);
}

// From here on the end of the client's process counts, not only that of its socket.
bool AttachServer::watch_peer(Connection& connection) {
    switch (watch_process(connection.socket, connection.peer, connection.connected_at,
                          connection.process)) {
        case Liveness::kWatched:
            return add_watch(connection.process, connection.on_process) ||
                   refuse(connection, Err::kLimit, kNoWatch);
        case Liveness::kUnknown:
            return true;
        case Liveness::kGone:
            return false;
        case Liveness::kNoRoom:
            return refuse(connection, Err::kLimit, kNoDescriptor);
    }
    return false;
}

bool AttachServer::offer_region(Connection& connection, const abi::RegionLayout& layout) {
    std::string why;
    auto region = SharedRegion::make(layout, why);
    if (!region) return refuse(connection, region.error(), why);
    connection.region = std::move(region.value());
    abi::initialise_control(connection.region.memory(), layout, connection.endpoint,
                            static_cast<std::uint32_t>(getpid()));
    auto offer = reply_with<abi::Offer>(Err::kOk, "");
    offer.abi_version = abi::kAbiVersion;
    offer.endpoint = connection.endpoint;
    offer.layout = layout;
    connection.state = State::kMapping;
    return send_packet(connection.socket, &offer, sizeof offer, connection.region.fd());
}

bool AttachServer::on_mapped(Connection& connection) {
    std::string why;
    const LogFields fields = fields_of(connection);
    Err error = connection.region.seal_and_populate(why);
    if (error == Err::kOk && !connection.region.locked() && may_warn())
        spdlog::warn(
            "client {}: its memory could not be locked; raise the memlock limit (ulimit -l)",
            connection.peer.pid);
    if (error == Err::kOk) {
        connection.region.close_fd();
        // The region stays mapped and the socket open until the engine lets go of the endpoint.
        const auto admitted = std::make_shared<Err>(Err::kOk);
        const bool ran = loop_.calls().run(
            [this, admitted, endpoint = connection.endpoint, memory = connection.region.memory(),
             layout = connection.region.layout(),
             upcall = upcall_to(connection.socket)](Core& core, Nanos) {
                *admitted = core.admit(endpoint, memory, layout, upcall);
                counters_.set_endpoints(core.endpoints());
            });
        error = ran ? *admitted : Err::kClosed;
        if (error != Err::kOk) why = ran ? std::string(text_of(error)) : kNoRound;
    }
    const auto ready = reply_with<abi::Ready>(error, why);
    if (!send_packet(connection.socket, &ready, sizeof ready) || error != Err::kOk) return false;
    connection.state = State::kAttached;
    arm(connection);
    loop_.add_doorbell(connection.socket);
    if (may_note())
        spdlog::info("client {} attached as endpoint {:#x}", connection.peer.pid,
                     connection.endpoint);
    return true;
}

// The upgrader has a separate descriptor for the answer, so this connection ends like others.
bool AttachServer::begin_upgrade(Connection& connection) {
    const uid_t uid = connection.peer.uid;
    if (uid != 0 && uid != geteuid())
        return refuse(connection, Err::kPermission,
                      "only root and the engine's own user may upgrade it; run ulc upgrade as one "
                      "of them");
    if (!options_.upgrades)
        return refuse(connection, Err::kUnsupported,
                      "this engine was started with --upgrade no; restart it instead");
    std::string why;
    if (!upgrader_.begin(connection.socket, why)) return refuse(connection, Err::kLimit, why);
    return false;
}

// Readers may ask often: the engine's thread is asked ten times a second at most.
void AttachServer::refresh_rows() {
    const Nanos now = monotonic_now();
    if (now < rows_at_) return;
    rows_at_ = now + kRowsEvery;
    const auto rows = std::make_shared<std::vector<abi::EndpointRow>>(abi::kRowsMax);
    const bool ran = loop_.calls().run(
        [rows](const Core& core, Nanos) { rows->resize(core.take_figures(*rows)); });
    if (ran) {
        rows_ = std::move(*rows);
    } else {
        rows_.clear();
    }
    for (const auto& connection : connections_) {
        const auto row =
            std::ranges::find(rows_, connection->endpoint, &abi::EndpointRow::endpoint);
        if (connection->reserved && row != rows_.end())
            row->pid = static_cast<std::uint32_t>(connection->peer.pid);
    }
    counters_.set_rows(rows_);
}

bool AttachServer::serve_counters(Connection& connection) {
    refresh_rows();
    const int fd = counters_.open_read_only();
    auto offer = reply_with<abi::Offer>(fd < 0 ? Err::kSystem : Err::kOk, "");
    offer.abi_version = abi::kAbiVersion;
    offer.layout.region_octets = counters_.octets();
    static_cast<void>(send_packet(connection.socket, &offer, sizeof offer, fd));
    if (fd >= 0) close(fd);
    return false;  // that is all this connection was for
}

/// Sets the processes of rows, those of one endpoint one after the other.
void AttachServer::name_processes(std::span<abi::StreamRow> rows) const {
    std::uint32_t pid = 0;
    for (std::size_t n = 0; n < rows.size(); ++n) {
        if (n == 0 || rows[n].endpoint != rows[n - 1].endpoint) {
            const auto owner = std::ranges::find_if(connections_, [&](const auto& connection) {
                return connection->reserved && connection->endpoint == rows[n].endpoint;
            });
            pid = owner == connections_.end() ? 0 : static_cast<std::uint32_t>((*owner)->peer.pid);
        }
        rows[n].pid = pid;
    }
}

// A user's figures only. The engine's thread collects them, so its time is charged to the user, as
// that of handshakes is: who asks all the time has to wait.
bool AttachServer::serve_streams(Connection& connection) {
    struct Figures {
        std::vector<abi::StreamRow> rows = std::vector<abi::StreamRow>(abi::kStreamRowsMax);
        std::size_t all = 0;
    };
    const auto figures = std::make_shared<Figures>();
    const engine::UserId uid = connection.peer.uid;
    const bool sees_all = uid == 0 || uid == geteuid();
    const Nanos begun = monotonic_now();
    const bool ran = loop_.calls().run([figures, uid, sees_all](const Core& core, Nanos) {
        figures->all = core.take_streams(figures->rows, sees_all ? nullptr : &uid);
    });
    if (!ran) return refuse(connection, Err::kClosed, kNoRound);
    user_of(uid).handshakes.charge(monotonic_now() - begun);
    std::vector<abi::StreamRow>& rows = figures->rows;
    rows.resize(std::min(rows.size(), figures->all));
    name_processes(rows);
    const int fd = make_stream_page(rows, figures->all);
    if (fd < 0) return refuse(connection, Err::kLimit, kNoDescriptor);
    auto offer = reply_with<abi::Offer>(Err::kOk, "");
    offer.abi_version = abi::kAbiVersion;
    offer.layout.region_octets = sizeof(abi::StreamPageHeader) + rows.size() * sizeof rows[0];
    static_cast<void>(send_packet(connection.socket, &offer, sizeof offer, fd));
    close(fd);
    return false;
}

}  // namespace ulc::daemon
