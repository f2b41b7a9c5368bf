// SPDX-License-Identifier: BSD-3-Clause
// The transport of a benchmark's messages: ULC, or a reference under the same loops. Blocking
// calls; a failure ends the program with a message, since a benchmark cannot go on without its
// peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ulc::bench {

class Transport {
public:
    virtual ~Transport() = default;
    /// Begins every benchmark's name: "ulc/embedded", "ulc/daemon", "mpi".
    [[nodiscard]] virtual const std::string& name() const = 0;
    [[nodiscard]] virtual std::uint16_t rank() const = 0;
    [[nodiscard]] virtual std::uint16_t size() const = 0;

    /// One message there and the next one back.
    virtual void round_trip(std::uint16_t peer, const void* out, void* in, std::size_t octets) = 0;
    /// The other side: one message here, then the same bytes back.
    virtual void echo(std::uint16_t peer, void* buffer, std::size_t octets) = 0;

    /// One message; returns when the payload may be changed.
    virtual void send(std::uint16_t peer, const void* payload, std::size_t octets) = 0;
    virtual void receive(std::uint16_t peer, void* buffer, std::size_t octets) = 0;

    /// Sends `count` equal messages, as many at a time as the transport permits, at most
    /// kStreamWindow.
    virtual void stream_out(std::uint16_t peer, const void* payload, std::size_t octets,
                            unsigned count) = 0;
    /// The other side; memory: kStreamWindow × bytes. Compares every byte with `expected`. False:
    /// one differs.
    virtual bool stream_in(std::uint16_t peer, void* memory, const void* expected,
                           std::size_t octets, unsigned count) = 0;

    /// One message to each rank of `order`, begun in that order, and one from each of them, all
    /// under way at once. out: a block of `octets` for each rank of the job; in: a block from each.
    virtual void exchange(std::span<const std::uint16_t> order, const unsigned char* out,
                          unsigned char* in, std::size_t octets) = 0;

    virtual void barrier(const char* algorithm) = 0;
    virtual void broadcast(std::uint16_t root, void* buffer, std::size_t octets,
                           const char* algorithm) = 0;
    virtual void allgather(const void* input, void* output, std::size_t octets,
                           const char* algorithm) = 0;
    // Blocks of `octets`; reductions are sums of doubles, one in 8 bytes.
    virtual void gather(std::uint16_t root, const void* input, void* output, std::size_t octets,
                        const char* algorithm) = 0;
    virtual void scatter(std::uint16_t root, const void* input, void* output, std::size_t octets,
                         const char* algorithm) = 0;
    virtual void alltoall(const void* input, void* output, std::size_t octets,
                          const char* algorithm) = 0;
    virtual void reduce(std::uint16_t root, const double* input, double* output, std::size_t count,
                        const char* algorithm) = 0;
    virtual void allreduce(const double* input, double* output, std::size_t count,
                           const char* algorithm) = 0;
    /// count: of each rank's block of the result.
    virtual void reduce_scatter(const double* input, double* output, std::size_t count,
                                const char* algorithm) = 0;
    virtual void scan(const double* input, double* output, std::size_t count,
                      const char* algorithm) = 0;
    virtual void exscan(const double* input, double* output, std::size_t count,
                        const char* algorithm) = 0;
    /// True if `algorithm` arguments mean anything; else only nullptr is given.
    [[nodiscard]] virtual bool has_algorithms() const = 0;
};

inline constexpr unsigned kStreamWindow = 16;

/// The transport that this program is linked with. nullptr: it cannot be had here; `why` says what
/// to do.
[[nodiscard]] std::unique_ptr<Transport> make_transport(int& argc, char**& argv, std::string& why);

}  // namespace ulc::bench
