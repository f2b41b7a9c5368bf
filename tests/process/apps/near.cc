// SPDX-License-Identifier: BSD-3-Clause
// Messages of libfabric between two ranks of one node: long ones, which the receiver reads from the
// sender's memory, and short ones, which go through memory of both. Prints "all right" or what
// differed.
//   ulc run -n 2 --nodes 1 -- process_near FOLDER read     both ranks read
//                                                 refuse   rank 1 may not: it gets the others
//                                                 kill     rank 0 dies while rank 1 reads
//                                                 flood    rank 0 dies while it writes short ones
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include "fabric_ranks.h"
#include "near_reads.h"
#include "tests/process/daemon/local_users.h"

namespace {

using namespace ulc::test;

unsigned char byte_at(std::size_t i, int of_rank) {
    return static_cast<unsigned char>(i * 7 + i / 1000 + static_cast<unsigned>(of_rank));
}

std::vector<unsigned char> message_of(std::size_t length, int of_rank) {
    std::vector<unsigned char> bytes(length);
    for (std::size_t i = 0; i < length; ++i)
        bytes[i] = byte_at(i, of_rank);
    return bytes;
}

/// Returns how many of the first `length` bytes are not those of the other rank.
std::size_t wrong_bytes(const std::vector<unsigned char>& bytes, std::size_t length) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < length; ++i)
        wrong += bytes[i] != byte_at(i, 1 - rank);
    return wrong;
}

/// Cuts a buffer into pieces of unequal length.
std::vector<iovec> pieces_of(std::vector<unsigned char>& bytes, std::size_t count) {
    std::vector<iovec> pieces;
    std::size_t at = 0;
    for (std::size_t i = 1; i <= count; ++i) {
        const std::size_t end = i == count ? bytes.size() : bytes.size() * i / (count + 1);
        pieces.push_back({bytes.data() + at, end - at});
        at = end;
    }
    return pieces;
}

/// Sends with a completion and the tag as completion data.
void send(const std::vector<iovec>& pieces, std::uint64_t tag, void* context,
          fi_addr_t to = f.peer) {
    const fi_msg_tagged message{pieces.data(), nullptr, pieces.size(), to, tag, 0, context, tag};
    until_taken([&] { return fi_tsendmsg(f.ep, &message, FI_COMPLETION | FI_REMOTE_CQ_DATA); });
}
void receive(const std::vector<iovec>& pieces, std::uint64_t tag, void* context) {
    const fi_msg_tagged message{pieces.data(), nullptr, pieces.size(), f.peer, tag, 0, context, 0};
    until_taken([&] { return fi_trecvmsg(f.ep, &message, FI_COMPLETION); });
}

/// Both ranks send each other a message of this length.
void exchange(std::size_t length, std::size_t out_pieces, std::size_t in_pieces) {
    auto out = message_of(length, rank);
    std::vector<unsigned char> in(length + 8);
    receive(pieces_of(in, in_pieces), 100, &in);
    send(pieces_of(out, out_pieces), 100, &out);
    for (int i = 0; i < 2; ++i) {
        fi_addr_t source = 0;
        const Entry entry = next(&source);
        CHECK(entry.op_context == &in || entry.op_context == &out);
        if (entry.op_context != &in) continue;
        CHECK(entry.len == length && entry.data == 100 && entry.tag == 100 && source == f.peer);
        CHECK((entry.flags & FI_REMOTE_CQ_DATA) != 0);
    }
    CHECK(wrong_bytes(in, length) == 0);
}

/// Both ranks exchange messages until each has tried to read the other's memory and shares memory
/// for short messages. Before, an engine has not named both processes, or a token is on its way.
void until_near() {
    for (char mine = 0, theirs = 0; mine == 0 || theirs == 0;) {
        check_time(__LINE__);
        exchange(100'000, 1, 1);
        exchange(1000, 1, 1);
        mine = reads + refusals > 0 && has_ring() ? 1 : 0;
        post(&theirs, 1, kMeet, 0, &theirs, f.peer);
        inject(std::string(1, mine), kMeet);
        CHECK(next().op_context == &theirs);
    }
}

/// Many messages before the first answer.
void many_at_once() {
    constexpr std::size_t kMessages = 8;
    constexpr std::size_t kLength = 100'000;
    auto out = message_of(kLength, rank);
    std::vector<std::vector<unsigned char>> in(kMessages, std::vector<unsigned char>(kLength));
    for (std::size_t i = 0; i < kMessages; ++i)
        send(pieces_of(out, 1), i, &out);
    for (std::size_t i = kMessages; i-- > 0;)
        receive(pieces_of(in[i], 1), i, &in[i]);
    for (std::size_t i = 0; i < 2 * kMessages; ++i)
        next();
    for (const auto& bytes : in)
        CHECK(wrong_bytes(bytes, kLength) == 0);
    meet();
}

/// Receives that are shorter than the message, some even shorter than its announcement.
void truncated() {
    constexpr std::size_t kLength = 100'000;
    auto out = message_of(kLength, rank);
    for (const std::size_t capacity : {50'000, 10, 0}) {
        std::vector<unsigned char> in(capacity + 1, 0xee);
        if (rank == 0) {
            send(pieces_of(out, 3), 5, &out);
            CHECK(next().op_context == &out);
        } else {
            post(in.data(), capacity, 5, 0, &in, f.peer);
            const fi_cq_err_entry error = next_error();
            CHECK(error.err == FI_ETRUNC && error.op_context == &in);
            CHECK(error.len == capacity && error.olen == kLength - capacity);
            CHECK(wrong_bytes(in, capacity) == 0 && in[capacity] == 0xee);
        }
        meet();
    }
}

/// Looks, claims and discards find the length and the data of an announced message.
void peeked() {
    constexpr std::size_t kLength = 200'000;
    constexpr int kMessages = 4;
    auto out = message_of(kLength, rank);
    if (rank == 0) {
        // No completions: a message that goes the ordinary way has its own before the meeting.
        const std::uint64_t before = fi_cntr_read(f.sent);
        for (int i = 0; i < kMessages; ++i)
            until_taken([&] {
                return fi_tsenddata(f.ep, out.data(), kLength, nullptr, 9, f.peer, 9, &out);
            });
        meet();
        CHECK(fi_cntr_wait(f.sent, before + kMessages + 1, 10'000) == 0);
        meet();
        return;
    }
    meet();
    int context[2];
    std::vector<unsigned char> in(kLength);
    const auto check = [](const Entry& entry, void* whose) {
        CHECK(entry.op_context == whose && entry.len == kLength && entry.data == 9);
        CHECK((entry.flags & FI_REMOTE_CQ_DATA) != 0);
    };
    CHECK(look(9, FI_PEEK, nullptr, 0, &context[0]) == 0);
    check(next(), &context[0]);
    for (int& one : context) {
        CHECK(look(9, FI_PEEK | FI_CLAIM, nullptr, 0, &one) == 0);
        check(next(), &one);
    }
    until_taken([&] { return look(9, FI_PEEK | FI_DISCARD, nullptr, 0, &in); });
    check(next(), &in);
    post(in.data(), kLength, 9, 0, &in, f.peer);
    check(next(), &in);
    CHECK(wrong_bytes(in, kLength) == 0);
    in.assign(kLength, 0);
    CHECK(look(9, FI_CLAIM, in.data(), kLength, &context[0]) == 0);
    check(next(), &context[0]);
    CHECK(wrong_bytes(in, kLength) == 0);
    until_taken([&] { return look(9, FI_CLAIM | FI_DISCARD, nullptr, 0, &context[1]); });
    CHECK(next().op_context == &context[1]);
    meet();
}

/// A buffer for many messages takes announced ones, one behind the other.
void many_in_one_buffer() {
    constexpr std::size_t kLength = 100'000;
    auto out = message_of(kLength, rank);
    std::vector<unsigned char> in(3 * kLength);
    if (rank == 1) {
        std::size_t least = 64;
        NEED(fi_setopt(&f.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
        const iovec piece{in.data(), in.size()};
        const fi_msg message{&piece, nullptr, 1, FI_ADDR_UNSPEC, &in, 0};
        until_taken([&] { return fi_recvmsg(f.ep, &message, FI_MULTI_RECV); });
    }
    meet();
    for (std::size_t i = 0; i < 3; ++i) {
        if (rank == 0) {
            const iovec piece{out.data(), out.size()};
            const fi_msg message{&piece, nullptr, 1, f.peer, &out, 0};
            until_taken([&] { return fi_sendmsg(f.ep, &message, FI_COMPLETION); });
            CHECK(next().op_context == &out);
            continue;
        }
        const Entry entry = next();
        CHECK(entry.op_context == &in && entry.len == kLength);
        CHECK(entry.buf == in.data() + i * kLength);
        CHECK(((entry.flags & FI_MULTI_RECV) != 0) == (i == 2));
        const auto* begin = static_cast<unsigned char*>(entry.buf);
        CHECK(wrong_bytes({begin, begin + kLength}, kLength) == 0);
    }
    meet();
}

void to_itself() {
    constexpr std::size_t kLength = 100'000;
    auto out = message_of(kLength, 1 - rank);
    std::vector<unsigned char> in(kLength);
    send(pieces_of(out, 1), 14, &out, f.self);
    post(in.data(), kLength, 14, 0, &in, f.self);
    for (int i = 0; i < 2; ++i)
        next();
    CHECK(wrong_bytes(in, kLength) == 0);
}

/// Rank 0 closes its endpoint before rank 1 receives: the message comes all the same.
void sent_before_the_end() {
    constexpr std::size_t kLength = 150'000;
    auto out = message_of(kLength, rank);
    meet();
    if (rank == 0) {
        until_taken([&] { return fi_tsend(f.ep, out.data(), kLength, nullptr, f.peer, 50, &out); });
        close_endpoint();
        out.assign(kLength, 0);
        return;
    }
    const Clock::time_point until = Clock::now() + std::chrono::milliseconds(300);
    Entry entry{};
    while (Clock::now() < until)
        CHECK(fi_cq_read(f.queue, &entry, 1) == -FI_EAGAIN);
    std::vector<unsigned char> in(kLength);
    post(in.data(), kLength, 50, 0, &in, f.peer);
    CHECK(next().op_context == &in && wrong_bytes(in, kLength) == 0);
    close_endpoint();
}

/// Rank 0 dies between two reads. Returns rank 1's exit code.
int die_under_a_read() {
    constexpr std::size_t kLength = 12U << 20;
    until_near();
    auto bytes = message_of(kLength, rank);
    if (rank == 0) {
        send(pieces_of(bytes, 1), 60, &bytes);
        next();
        std::printf("rank 0: is alive\n");
        return 1;
    }
    reads = 0;
    kill_at = 2;  // the first part, the second
    post(bytes.data(), kLength, 60, 0, &bytes, f.peer);
    const fi_cq_err_entry error = next_error();
    CHECK(error.op_context == &bytes && error.err == FI_EHOSTUNREACH);
    CHECK(reads == 1 && refusals == 1);
    if (failures == 0) std::printf("rank %d: all right\n", rank);
    return 0;
}

/// Rank 0 is killed while it writes messages. Those that came are the first of those that it sent.
/// Returns rank 1's exit code.
int die_in_a_flood() {
    constexpr std::size_t kLongest = 3000;
    constexpr std::uint64_t kKillAt = 20'000;
    const auto length_of = [](std::uint64_t n) { return n * 37 % kLongest; };
    std::vector<unsigned char> bytes(kLongest);
    until_near();
    if (rank == 0) {
        inject(std::to_string(::getpid()), 1);
        for (std::uint64_t n = 0;; ++n) {
            bytes.assign(kLongest, static_cast<unsigned char>(n));
            const std::uint64_t before = fi_cntr_read(f.sent);
            until_taken([&] {
                return fi_tsend(f.ep, bytes.data(), length_of(n), nullptr, f.peer, n, &bytes);
            });
            while (fi_cntr_read(f.sent) == before)
                check_time(__LINE__);
        }
    }
    char peer[16] = {};
    post(peer, sizeof peer, 1, 0, peer, f.peer);
    next();
    std::uint64_t n = 0;
    for (;; ++n) {
        post(bytes.data(), kLongest, 0, kTagMax, &bytes, f.peer);
        Entry entry{};
        ssize_t got = 0;
        while ((got = fi_cq_read(f.queue, &entry, 1)) == -FI_EAGAIN)
            check_time(__LINE__);
        if (got != 1) break;
        CHECK(entry.tag == n && entry.len == length_of(n));
        CHECK(std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(entry.len),
                         static_cast<unsigned char>(n)) == static_cast<std::ptrdiff_t>(entry.len));
        if (failures > 0) return 1;
        if (n != kKillAt) continue;
        CHECK(has_ring());
        ::kill(std::atoi(peer), SIGKILL);
    }
    CHECK(n > kKillAt);
    CHECK(next_error().err == FI_EHOSTUNREACH);
    if (failures == 0) std::printf("rank %d: all right\n", rank);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    rank = std::atoi(std::getenv("ULC_RANK"));
    const std::string how = argv[2];
    if (how == "refuse" && rank == 1) CHECK(refuse_calls({{SYS_process_vm_readv, EPERM}}));
    open_endpoint();
    exchange_addresses(argv[1]);
    meet();
    if (how == "kill") return die_under_a_read();
    if (how == "flood") return die_in_a_flood();
    many_at_once();
    until_near();
    const int before = reads;
    exchange(5'000'003, 1, 1);
    CHECK(reads - before == (how == "refuse" && rank == 1 ? 0 : 2));
    exchange(5'000'003, 2, 1);  // the descriptor too
    CHECK(reads - before == (how == "refuse" && rank == 1 ? 0 : 5));
    for (const std::size_t length : {30'000, 65'536, 65'537, 1'000'000})
        exchange(length, 1, 1);
    exchange(700'001, 7, 3);
    exchange(700'001, 2, 7);
    exchange(20'000'000, 3, 1);
    truncated();
    peeked();
    many_in_one_buffer();
    to_itself();
    CHECK(how == "refuse" && rank == 1 ? reads == 0 && refusals > 0 : reads > 0 && refusals == 0);
    sent_before_the_end();
    if (failures == 0) std::printf("rank %d: all right\n", rank);
    return failures == 0 ? 0 : 1;
}
