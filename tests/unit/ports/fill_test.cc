// SPDX-License-Identifier: BSD-3-Clause
// How messages fill the buffer of a port (ports/port_table.h), against a model that knows only the
// sentences of [GAMMA §4.4.3.1]: it keeps the bytes of the buffer and a number of bytes left.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "base/prng.h"
#include "ports/port_table.h"

namespace ulc::ports {
namespace {

constexpr PortNumber kPort = 7;

/// The rule in other words: bytes are left until the buffer is full, and then all of them.
struct Model {
    std::vector<unsigned char> buffer;
    std::size_t left;

    explicit Model(std::size_t size) : buffer(size), left(size) {}

    Fault take(const std::vector<unsigned char>& message) {
        if (message.empty()) return Fault::kNone;
        const bool fits = message.size() <= left;
        const std::size_t at = buffer.size() - left;
        for (std::size_t n = 0; n < message.size() && n < left; ++n)
            buffer[at + n] = message[n];
        left = message.size() < left ? left - message.size() : buffer.size();
        return fits ? Fault::kNone : Fault::kTooLong;
    }
};

/// Delivers a message as Process does.
Fault arrive(PortTable& ports, const std::vector<unsigned char>& message) {
    const Place place = ports.place(kPort, message.size());
    if (place.copied > 0) std::memcpy(place.at, message.data(), place.copied);
    ports.advance(kPort, place);
    return place.fault;
}

Port input(unsigned char* buffer, std::size_t size) {
    Port port;
    port.receives = true;
    port.buffer = buffer;
    port.size = size;
    return port;
}

TEST(PortsFill, random_lengths_up_to_three_buffers_fill_as_the_model_says) {
    Prng random(21);
    for (const std::size_t size : {1U, 2U, 7U, 64U, 1500U}) {
        std::vector<unsigned char> buffer(size);
        PortTable ports;
        ports.bind(kPort, input(buffer.data(), size));
        Model model(size);
        for (int message = 0; message < 20'000; ++message) {
            std::vector<unsigned char> bytes(random.below(3 * size + 1));
            for (unsigned char& byte : bytes)
                byte = static_cast<unsigned char>(random.next());
            // Short ones more often, or few would fit behind others.
            if (message % 2 == 0) bytes.resize(bytes.size() / 6);
            ASSERT_EQ(arrive(ports, bytes), model.take(bytes)) << size << ' ' << bytes.size();
            ASSERT_EQ(buffer, model.buffer);
        }
    }
}

TEST(PortsFill, a_message_that_fits_exactly_is_overwritten_by_the_next) {
    unsigned char buffer[4] = {};
    PortTable ports;
    ports.bind(kPort, input(buffer, sizeof buffer));
    EXPECT_EQ(arrive(ports, {1, 2}), Fault::kNone);
    EXPECT_EQ(arrive(ports, {3, 4}), Fault::kNone);
    EXPECT_EQ(arrive(ports, {5}), Fault::kNone);
    EXPECT_EQ(std::memcmp(buffer, "\5\2\3\4", 4), 0);
}

TEST(PortsFill, without_a_buffer_only_empty_messages_are_no_error) {
    PortTable ports;
    ports.bind(kPort, input(nullptr, 100));
    EXPECT_EQ(arrive(ports, {}), Fault::kNone);
    EXPECT_EQ(arrive(ports, {1}), Fault::kTooLong);
    EXPECT_EQ(ports[kPort].fill, 0U);
}

TEST(PortsFill, a_buffer_is_attached_only_where_a_size_is_known_and_is_filled_from_its_start) {
    unsigned char first[4] = {};
    unsigned char second[4] = {};
    PortTable ports;
    EXPECT_FALSE(ports.attach(kPort, first));
    ports.bind(kPort, input(nullptr, 0));
    EXPECT_FALSE(ports.attach(kPort, first));
    ports.bind(kPort, input(first, sizeof first));
    EXPECT_EQ(arrive(ports, {1, 2, 3}), Fault::kNone);
    EXPECT_TRUE(ports.attach(kPort, second));
    EXPECT_EQ(arrive(ports, {4, 5, 6, 7}), Fault::kNone);
    EXPECT_EQ(std::memcmp(first, "\1\2\3\0", 4), 0);
    EXPECT_EQ(std::memcmp(second, "\4\5\6\7", 4), 0);
}

TEST(PortsFill, what_was_placed_in_an_earlier_buffer_moves_no_fill) {
    unsigned char buffer[8] = {};
    PortTable ports;
    ports.bind(kPort, input(buffer, sizeof buffer));
    const Place place = ports.place(kPort, 5);
    ports.bind(kPort, input(buffer, sizeof buffer));
    ports.advance(kPort, place);
    EXPECT_EQ(ports[kPort].fill, 0U);
}

}  // namespace
}  // namespace ulc::ports
