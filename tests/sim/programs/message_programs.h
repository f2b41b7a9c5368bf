// SPDX-License-Identifier: BSD-3-Clause
// Programs of point-to-point and multicast measurements, on the rings: senders, a checking
// receiver, ping-pong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/cluster/program.h"
#include "tests/sim/cluster/ring_client.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {

/// The record that the programs of one measurement write. Messages are numbered by their source,
/// from 0.
struct MessageLog {
    std::vector<std::vector<Nanos>> sent_at;  ///< by source and number
    std::vector<Nanos> latency;               ///< in order of delivery
    std::vector<std::uint64_t> octets_by_source;
    std::uint64_t messages = 0;
    std::uint64_t octets = 0;
    std::string error;
    std::function<void()> on_delivery;  ///< after each
};

/// Cuts long messages into chunks, as libulc does.
class MessageSender {
public:
    MessageSender(RingClient& client, std::uint32_t stream, std::size_t octets)
        : client_(client), stream_(stream), octets_(octets) {}
    /// Sends the next message, from where it stopped. Returns false if the ring or the arena is
    /// full; call again when something has come.
    bool send(std::uint64_t number);

private:
    RingClient& client_;
    std::uint32_t stream_;
    std::size_t octets_;
    std::size_t offset_ = 0;
};

/// Number n of source s consists of the bytes of Oracle::payload(number_of(s, n)).
[[nodiscard]] std::uint64_t message_number(Rank source, std::uint64_t n);

/// Takes messages and checks them: the next of its source, every byte right. Its rank may send as
/// well.
class Receiver : public Program {
public:
    Receiver(RingClient& client, Rank rank, std::size_t octets, MessageLog& log)
        : client_(client), rank_(rank), octets_(octets), log_(log), next_(log.sent_at.size()) {}
    Nanos act(Nanos now) override;

protected:
    virtual void on_message(const Message& message, Nanos now);
    RingClient& client_;
    Rank rank_;
    std::size_t octets_;
    MessageLog& log_;

private:
    std::vector<std::uint64_t> next_;  ///< by source
};

/// Sends `count` messages to a stream at full speed.
class StreamProgram : public Receiver {
public:
    StreamProgram(RingClient& client, Rank rank, std::uint32_t stream, std::size_t octets,
                  std::uint64_t count, MessageLog& log)
        : Receiver(client, rank, octets, log), sender_(client, stream, octets), count_(count) {}
    Nanos act(Nanos now) override;

private:
    MessageSender sender_;
    std::uint64_t count_;
    std::uint64_t sent_ = 0;
};

/// Returns to the peer what it gets from it; rank 0 begins, and logs half of each round trip.
class PingPong : public Receiver {
public:
    PingPong(RingClient& client, Rank rank, Rank peer, std::size_t octets, std::uint64_t count,
             MessageLog& log)
        : Receiver(client, rank, octets, log), sender_(client, peer, octets), count_(count) {}
    Nanos act(Nanos now) override;

protected:
    void on_message(const Message& message, Nanos now) override;

private:
    MessageSender sender_;
    std::uint64_t count_;
    std::uint64_t sent_ = 0;
    std::uint64_t got_ = 0;
    Nanos began_ = 0;
};

}  // namespace ulc::sim
