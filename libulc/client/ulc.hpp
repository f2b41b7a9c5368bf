// SPDX-License-Identifier: BSD-3-Clause
/// @file
/// A thin C++20 interface of ulc.h: an endpoint that closes itself, spans in place of pointer and
/// length, exceptions in place of codes. Nothing is hidden: every object gives its C handle, and
/// ULC_ERR_AGAIN stays an ordinary result.
///
///   ulc::Endpoint ep;                          // ULC_ENGINE or the default socket
///   ep.join();                                 // by the environment of `ulc run`
///   ep.send(1, 7, std::as_bytes(std::span(data)));
///   ulc::Received got = ep.receive(ULC_RANK_ANY, 7, std::as_writable_bytes(std::span(buffer)));
#pragma once

#include <ulc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

/// The C++ interface of libulc.
namespace ulc {

/// @defgroup ulc_cpp C++
/// @{

/// A failed call: the ulc_error and a sentence. Calls that start an operation never throw
/// ULC_ERR_AGAIN.
class Error : public std::exception {
public:
    /// Takes the code of the call that failed, and what the call did.
    explicit Error(int code, const std::string& during)
        : code_(code), text_(during + ": " + ulc_error_text(code)) {
        const char* more = ulc_last_error_text();
        if (more != nullptr && *more != '\0') text_ += std::string(" (") + more + ")";
    }
    /// Returns the ulc_error.
    [[nodiscard]] int code() const noexcept { return code_; }
    /// Returns the sentence.
    [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

private:
    int code_;
    std::string text_;
};

/// One pending operation; it must not move until done. Its destructor does not wait: finish or
/// cancel it first.
class Request {
public:
    Request() = default;
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    /// Returns the C handle, for functions of ulc.h.
    [[nodiscard]] ulc_request* handle() noexcept { return &request_; }

private:
    ulc_request request_{};
};

/// The result of a receive.
struct Received {
    std::uint16_t source;  ///< rank of the sender
    ulc_group group;       ///< 0: unicast
    std::uint64_t tag;     ///< as it was sent
    std::size_t length;    ///< bytes of the message
};

/// One endpoint (ulc_endpoint). One thread at a time; movable. All blocking calls have a limit; the
/// default is none.
class Endpoint {
public:
    using Limit = std::chrono::nanoseconds;             ///< longest time of a wait
    static constexpr Limit kForever{ULC_WAIT_FOREVER};  ///< no limit

    /// Calls ulc_open(). Throws Error.
    explicit Endpoint(const char* engine = nullptr) {
        ulc_endpoint* made = nullptr;
        check(ulc_open(engine, &made), "opening an endpoint");
        endpoint_.reset(made);
    }
    /// Returns the C handle, still owned by this object.
    [[nodiscard]] ulc_endpoint* handle() const noexcept { return endpoint_.get(); }

    /// Calls ulc_join_wait(); by default with the values of the environment that `ulc run` sets.
    /// Throws Error.
    void join(const char* job = nullptr, std::uint16_t rank = ULC_RANK_ANY, std::uint16_t size = 0,
              Limit limit = kForever) {
        check(ulc_join_wait(handle(), job, rank, size, limit.count()), "joining the job");
    }
    /// Calls ulc_leave_wait(). Throws Error.
    void leave(Limit limit = kForever) {
        check(ulc_leave_wait(handle(), limit.count()), "leaving the job");
    }
    /// Calls ulc_rejoin(). Throws Error.
    void rejoin(Limit limit = kForever) {
        ulc_endpoint* raw = endpoint_.release();
        const int error = ulc_rejoin(&raw, limit.count());
        endpoint_.reset(raw);
        check(error, "joining again");
    }
    /// Calls ulc_open_links_wait(). Throws Error.
    void open_links(std::uint16_t links, Limit limit = kForever) {
        check(ulc_open_links_wait(handle(), links, limit.count()), "opening for links");
    }
    /// Calls ulc_address(). Throws Error.
    [[nodiscard]] ulc_link_address address() const {
        ulc_link_address out;
        check(ulc_address(handle(), &out), "asking for the address");
        return out;
    }
    /// Calls ulc_link() and waits; returns the peer's number. Throws Error.
    std::uint16_t link(const ulc_link_address& peer, Limit limit = Limit{0}) {
        Request request;
        check(ulc_link(handle(), &peer, limit.count(), request.handle()), "linking");
        return wait(request).source;
    }
    /// Calls ulc_next_peer(); returns false if there is none. Throws Error.
    bool next_peer(std::uint16_t& peer) {
        const int error = ulc_next_peer(handle(), &peer);
        if (error == ULC_ERR_AGAIN) return false;
        check(error, "asking for a peer");
        return true;
    }
    /// Calls ulc_unlink() and waits. Throws Error.
    void unlink(std::uint16_t peer) {
        Request request;
        int error = ULC_ERR_AGAIN;
        while ((error = ulc_unlink(handle(), peer, request.handle())) == ULC_ERR_AGAIN)
            poll();
        check(error, "unlinking");
        wait(request);
    }
    /// Returns the own rank.
    [[nodiscard]] std::uint16_t rank() const noexcept { return ulc_rank(handle()); }
    /// Returns the number of ranks.
    [[nodiscard]] std::uint16_t size() const noexcept { return ulc_size(handle()); }
    /// Returns the group of all ranks.
    [[nodiscard]] ulc_group world() const noexcept { return ulc_world(handle()); }

    /// Starts a send; payload stays untouched until wait(request). Throws Error.
    void start_send(std::uint16_t to, std::uint64_t tag, std::span<const std::byte> payload,
                    Request& request) {
        check(ulc_send(handle(), to, tag, payload.data(), payload.size(), request.handle()),
              "sending");
    }
    /// Starts a multicast to all other members (or a subset). Throws Error.
    void start_multicast(ulc_group group, std::uint64_t tag, std::span<const std::byte> payload,
                         Request& request, std::uint64_t subset = ULC_SUBSET_ALL) {
        check(ulc_multicast(handle(), group, subset, tag, payload.data(), payload.size(),
                            request.handle()),
              "multicasting");
    }
    /// Starts a receive. Throws Error.
    void start_receive(std::uint16_t from, std::uint64_t tag, std::span<std::byte> buffer,
                       Request& request, std::uint64_t mask = UINT64_MAX) {
        check(
            ulc_receive(handle(), from, tag, mask, buffer.data(), buffer.size(), request.handle()),
            "receiving");
    }
    /// Starts a send of several pieces; they and their list stay untouched until wait(request).
    /// Throws Error.
    void start_send(std::uint16_t to, std::uint64_t tag, std::span<const ulc_piece> pieces,
                    Request& request, unsigned flags = 0) {
        check(ulc_sendv(handle(), to, tag, pieces.data(), static_cast<unsigned>(pieces.size()),
                        flags, request.handle()),
              "sending");
    }
    /// Starts a multicast of several pieces. Throws Error.
    void start_multicast(ulc_group group, std::uint64_t tag, std::span<const ulc_piece> pieces,
                         Request& request, std::uint64_t subset = ULC_SUBSET_ALL,
                         unsigned flags = 0) {
        check(ulc_multicastv(handle(), group, subset, tag, pieces.data(),
                             static_cast<unsigned>(pieces.size()), flags, request.handle()),
              "multicasting");
    }
    /// Calls ulc_set_hold(). Throws Error.
    void set_hold(std::int64_t limit_ns, unsigned flags = 0,
                  std::span<const std::uint16_t> keep = {}) {
        check(ulc_set_hold(handle(), limit_ns, flags, keep.data(),
                           static_cast<unsigned>(keep.size())),
              "setting the limit of the hold");
    }

    /// Calls ulc_set_rendezvous(). Throws Error.
    void set_rendezvous(std::uint64_t from, std::uint64_t held_max = UINT64_MAX) {
        check(ulc_set_rendezvous(handle(), from, held_max), "setting the rendezvous");
    }
    /// Starts a receive into several pieces. Throws Error.
    void start_receive(std::uint16_t from, std::uint64_t tag, std::span<const ulc_piece> pieces,
                       Request& request, std::uint64_t mask = UINT64_MAX) {
        check(ulc_receivev(handle(), from, tag, mask, pieces.data(),
                           static_cast<unsigned>(pieces.size()), request.handle()),
              "receiving");
    }
    /// Calls ulc_probe(): finds the first message that a receive would take, which stays; returns
    /// false if there is none. Throws Error.
    bool probe(std::uint16_t from, std::uint64_t tag, Received* out = nullptr,
               std::uint64_t mask = UINT64_MAX) {
        ulc_status status;
        const int error = ulc_probe(handle(), from, tag, mask, &status);
        if (error == ULC_ERR_AGAIN) return false;
        check(error, "probing");
        if (out != nullptr) *out = received(status);
        return true;
    }
    /// Calls ulc_claim(): takes the message that probe() would find for the caller; nullptr: none.
    /// Throws Error.
    [[nodiscard]] ulc_message* claim(std::uint16_t from, std::uint64_t tag, Received* out = nullptr,
                                     std::uint64_t mask = UINT64_MAX) {
        ulc_status status;
        ulc_message* message = nullptr;
        const int error = ulc_claim(handle(), from, tag, mask, &message, &status);
        if (error == ULC_ERR_AGAIN) return nullptr;
        check(error, "claiming");
        if (out != nullptr) *out = received(status);
        return message;
    }
    /// Starts the receive of a claimed message. Throws Error.
    void start_receive(ulc_message* message, std::span<const ulc_piece> pieces, Request& request) {
        check(ulc_receive_claimed(handle(), message, pieces.data(),
                                  static_cast<unsigned>(pieces.size()), request.handle()),
              "receiving");
    }
    /// Calls ulc_discard(). Throws Error.
    void discard(ulc_message* message) { check(ulc_discard(handle(), message), "discarding"); }
    /// Returns true if the request is done; then `out`, if given, is filled. Does not poll. Throws
    /// Error if it failed.
    bool test(Request& request, Received* out = nullptr) {
        ulc_status status;
        const int error = ulc_test(handle(), request.handle(), &status);
        if (error == ULC_ERR_AGAIN) return false;
        check(error != ULC_OK ? error : status.error, "an operation");
        if (out != nullptr) *out = received(status);
        return true;
    }
    /// Waits until the request is done. Throws Error, including ULC_ERR_TIMEOUT.
    Received wait(Request& request, Limit limit = kForever) {
        ulc_status status;
        const int error = ulc_wait_for(handle(), request.handle(), &status, limit.count());
        check(error != ULC_OK ? error : status.error, "waiting for an operation");
        return received(status);
    }
    /// Cancels a receive that has not matched; returns false if it has.
    bool cancel(Request& request) noexcept {
        return ulc_cancel(handle(), request.handle()) == ULC_OK;
    }

    /// Calls start_send() and waits.
    void send(std::uint16_t to, std::uint64_t tag, std::span<const std::byte> payload) {
        Request request;
        start_send(to, tag, payload, request);
        wait(request);
    }
    /// Calls start_multicast() and waits.
    void multicast(ulc_group group, std::uint64_t tag, std::span<const std::byte> payload) {
        Request request;
        start_multicast(group, tag, payload, request);
        wait(request);
    }
    /// Calls start_receive() and waits; a receive that reaches the limit is cancelled.
    Received receive(std::uint16_t from, std::uint64_t tag, std::span<std::byte> buffer,
                     Limit limit = kForever) {
        Request request;
        start_receive(from, tag, buffer, request);
        ulc_status status;
        int error = ulc_wait_for(handle(), request.handle(), &status, limit.count());
        while (error != ULC_OK && !cancel(request))  // it is arriving into `buffer`: let it end
            error = ulc_wait_for(handle(), request.handle(), &status, ULC_WAIT_FOREVER);
        check(error != ULC_OK ? error : status.error, "receiving");
        return received(status);
    }
    /// Calls ulc_group_create() and waits. Collective over `ranks`. Throws Error.
    ulc_group make_group(std::span<const std::uint16_t> ranks) {
        Request request;
        check(ulc_group_create(handle(), ranks.data(), static_cast<std::uint16_t>(ranks.size()),
                               request.handle()),
              "making a group");
        ulc_status status;
        const int error = ulc_wait_for(handle(), request.handle(), &status, ULC_WAIT_FOREVER);
        check(error != ULC_OK ? error : status.error, "making a group");
        return status.group;
    }

    /// Starts ulc_group_create_keyed(); the result of wait(request) names the group. Collective
    /// over `ranks`. Throws Error.
    void start_group(std::span<const std::uint16_t> ranks, std::uint64_t key, Request& request) {
        check(
            ulc_group_create_keyed(handle(), ranks.data(), static_cast<std::uint16_t>(ranks.size()),
                                   key, request.handle()),
            "making a group");
    }

    /// Calls ulc_poll(): returns the events taken. Throws Error when the endpoint ended.
    int poll() {
        const int events = ulc_poll(handle());
        if (events < 0) check(-events, "polling");
        return events;
    }

private:
    struct Close {
        void operator()(ulc_endpoint* endpoint) const noexcept { ulc_close(endpoint); }
    };
    static void check(int error, const char* during) {
        if (error != ULC_OK) throw Error(error, during);
    }
    static Received received(const ulc_status& status) noexcept {
        return {status.source, status.group, status.tag, static_cast<std::size_t>(status.length)};
    }

    std::unique_ptr<ulc_endpoint, Close> endpoint_;
};

/// @}

}  // namespace ulc
