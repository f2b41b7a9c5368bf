// SPDX-License-Identifier: BSD-3-Clause
// Speaks libfabric's API with the provider of this build: two ranks of `ulc run`. Rank 1 answers
// rank 0, and both compare what they get. Prints "all right" or what differed.
//   ulc run -n 2 -- process_fabric FOLDER      FOLDER: where the ranks leave their addresses
//   process_fabric FOLDER auto                 with progress without calls
//   process_fabric stranger                    rank 0 of two; stranger.cc is rank 1
#include <poll.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "fabric_ranks.h"

namespace {

using namespace ulc::test;

int info_for(void (*change)(fi_info&)) {
    fi_info* hints = fi_allocinfo();
    fi_info* found = nullptr;
    hints->fabric_attr->prov_name = ::strdup("ulc");
    change(*hints);
    const int error = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &found);
    if (found != nullptr) fi_freeinfo(found);
    fi_freeinfo(hints);
    return error;
}

void refusals() {
    CHECK(info_for([](fi_info&) {}) == 0);
    CHECK(info_for([](fi_info& i) { i.caps = FI_RMA | FI_ATOMIC; }) == 0);
    CHECK(info_for([](fi_info& i) { i.caps = FI_RMA | FI_FENCE; }) == -FI_ENODATA);
    CHECK(info_for([](fi_info& i) { i.caps = FI_COLLECTIVE; }) == -FI_ENODATA);
    CHECK(info_for([](fi_info& i) { i.tx_attr->msg_order = FI_ORDER_SAW; }) == -FI_ENODATA);
    CHECK(info_for([](fi_info& i) { i.tx_attr->rma_iov_limit = 2; }) == -FI_ENODATA);
    CHECK(info_for([](fi_info& i) { i.ep_attr->type = FI_EP_MSG; }) == -FI_ENODATA);
    CHECK(info_for([](fi_info& i) { i.ep_attr->mem_tag_format = UINT64_MAX; }) == -FI_ENODATA);
    CHECK(info_for([](fi_info& i) { i.tx_attr->iov_limit = 8; }) == -FI_ENODATA);
    CHECK(info_for([](fi_info& i) { i.tx_attr->op_flags = FI_DELIVERY_COMPLETE; }) == 0);
    CHECK(info_for([](fi_info& i) { i.domain_attr->cq_data_size = 9; }) == -FI_ENODATA);
}

/// Rank 0 starts operations before rank 1 has an endpoint: they are queued, within a bound.
constexpr std::size_t kQueued = 1024;
char early_contexts[kQueued];

void start_early(const std::string& folder) {
    std::string peer(256, '\0');
    std::size_t length = peer.size();
    NEED(fi_getname(&f.ep->fid, peer.data(), &length));
    peer[7] = 1;  // the rank
    fi_addr_t to = 0;
    CHECK(fi_av_insert(f.addresses, peer.data(), 1, &to, 0, nullptr) == 1);
    std::string text = "early";
    CHECK(fi_tinject(f.ep, text.data(), 5, to, 30) == 0);
    text = "later";
    CHECK(fi_tsend(f.ep, text.data(), 0, nullptr, to, 30, &text) == 0);
    char* context = early_contexts;
    for (std::size_t queued = 2; queued < kQueued; ++queued, ++context)
        CHECK(fi_trecv(f.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 31, 0, context) == 0);
    CHECK(fi_trecv(f.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 31, 0, context) == -FI_EAGAIN);
    CHECK(fi_tinject(f.ep, text.data(), 5, to, 30) == -FI_EAGAIN);
    CHECK(fi_cancel(&f.ep->fid, early_contexts) == 0);
    CHECK(next_error().op_context == early_contexts);
    CHECK(fi_trecv(f.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 31, 0, context) == 0);
    CHECK(context == early_contexts + kQueued - 2);
    std::ofstream(folder + "/early").flush();
}

/// The job forms, and rank 1 answers in order.
void end_early() {
    for (std::size_t i = 1; i <= kQueued - 2; ++i)
        CHECK(next().op_context == early_contexts + i);
}

void answer_early() {
    char in[8] = {};
    for (const std::size_t length : {5, 0}) {
        post(in, sizeof in, 30, 0, in, f.peer);
        CHECK(next().len == length && std::strcmp(in, "early") == 0);
    }
    for (std::size_t i = 0; i < kQueued - 2; ++i)
        inject("", 31);
}

void tagged() {
    meet();
    int contexts[3];
    char in[3][64] = {};
    if (rank == 1) {
        // 62 tag bits, completion data, and the source.
        post(in[1], 64, 0x5500, 0xff, &contexts[1], FI_ADDR_UNSPEC);
        post(in[0], 64, kTagMax, 0, &contexts[0], f.peer);
        fi_addr_t source = 77;
        Entry entry = next(&source);
        CHECK(entry.op_context == &contexts[1] && entry.tag == 0x5577 && entry.len == 5);
        CHECK((entry.flags & FI_REMOTE_CQ_DATA) != 0 && entry.data == 0xfedcba9876543210);
        CHECK((entry.flags & (FI_RECV | FI_TAGGED)) == (FI_RECV | FI_TAGGED));
        CHECK(source == f.peer && std::strcmp(in[1], "data!") == 0);
        entry = next(&source);
        CHECK(entry.op_context == &contexts[0] && entry.tag == kTagMax);
        CHECK((entry.flags & FI_REMOTE_CQ_DATA) == 0 && source == f.peer);
    } else {
        until_taken(
            [] { return fi_tinjectdata(f.ep, "data!", 5, 0xfedcba9876543210, f.peer, 0x5577); });
        inject("top", kTagMax);
    }
    meet();
}

// Buffers for three messages each fill in the order in which they were posted, each before a later
// receive takes one, and are given back with their last message. Tagged messages pass by.
void untagged() {
    constexpr std::size_t kLength = 50;
    meet();
    int contexts[3] = {};
    if (rank == 1) {
        static char buffers[3][200];
        std::size_t least = 64;
        NEED(fi_setopt(&f.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
        for (int i = 0; i < 3; ++i) {
            const iovec piece{buffers[i], sizeof buffers[i]};
            const fi_msg message{&piece, nullptr, 1, FI_ADDR_UNSPEC, &contexts[i], 0};
            until_taken([&] { return fi_recvmsg(f.ep, &message, i < 2 ? FI_MULTI_RECV : 0); });
        }
        inject("go", 1);
        for (int i = 0; i < 7; ++i) {
            const Entry entry = next();
            CHECK(entry.op_context == &contexts[i / 3] && entry.len == kLength);
            if (i == 6) break;
            CHECK(entry.buf == buffers[i / 3] + kLength * (i % 3));
            CHECK(*static_cast<char*>(entry.buf) == 'a' + i);
            CHECK(((entry.flags & FI_MULTI_RECV) != 0) == (i % 3 == 2));
        }
        CHECK(buffers[2][0] == 'g');
        CHECK(fi_cancel(&f.ep->fid, &contexts[0]) == -FI_ENOENT);
    } else {
        char go[2];
        post(go, 2, 1, 0, &contexts[0], f.peer);
        next();
        for (int i = 0; i < 7; ++i) {
            const std::string text(kLength, static_cast<char>('a' + i));
            until_taken([&] { return fi_inject(f.ep, text.data(), text.size(), f.peer); });
        }
    }
    meet();
}

void peeks() {
    meet();
    int context = 0;
    char in[32] = {};
    if (rank == 0) {
        until_taken([] { return fi_tinjectdata(f.ep, "first", 5, 41, f.peer, 9); });
        inject("second", 9);
        inject("third", 9);
        meet();
        return;
    }
    meet();  // so all three have arrived
    CHECK(look(8, FI_PEEK, nullptr, 0, &context) == 0);
    CHECK(next_error().err == FI_ENOMSG);
    CHECK(look(9, FI_PEEK, nullptr, 0, &context) == 0);
    Entry entry = next();
    CHECK(entry.len == 5 && entry.data == 41 && (entry.flags & FI_REMOTE_CQ_DATA) != 0);
    CHECK(look(9, FI_PEEK | FI_CLAIM, nullptr, 0, &context) == 0);
    CHECK(next().len == 5);
    CHECK(look(9, FI_PEEK | FI_DISCARD, nullptr, 0, in) == 0);
    CHECK(next().len == 6);
    post(in, sizeof in, 9, 0, in, f.peer);
    CHECK(next().op_context == in && std::strcmp(in, "third") == 0);
    CHECK(look(9, FI_CLAIM, in, sizeof in, &context) == 0);
    entry = next();
    CHECK(entry.op_context == &context && std::strncmp(in, "first", 5) == 0);
    CHECK(look(9, FI_CLAIM, in, sizeof in, &context) == -FI_EINVAL);
}

void errors() {
    meet();
    char in[32] = {};
    int context = 0;
    if (rank == 0) {
        inject("ten bytes.", 11);
    } else {
        post(in, 4, 11, 0, &context, f.peer);
        const fi_cq_err_entry error = next_error();
        CHECK(error.err == FI_ETRUNC && error.op_context == &context);
        CHECK(error.olen == 6 && error.len == 4 && in[4] == 0);
    }
    post(in, 4, 12, 0, &context, f.peer);
    CHECK(fi_cancel(&f.ep->fid, &context) == 0);
    CHECK(next_error().err == FI_ECANCELED);
    CHECK(fi_cancel(&f.ep->fid, &context) == -FI_ENOENT);
    CHECK(fi_tinject(f.ep, in, 4097, f.peer, 1) == -FI_EINVAL);
    CHECK(fi_tinject(f.ep, in, 4, 99, 1) == -FI_EINVAL);
}

void large() {
    meet();
    constexpr std::size_t kBytes = 700'001;
    std::vector<unsigned char> out(kBytes);
    std::vector<unsigned char> in(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i)
        out[i] = static_cast<unsigned char>(i * 7 + i / 1000 + static_cast<unsigned>(rank));
    const std::uint64_t before = fi_cntr_read(f.sent);
    int context[2];
    iovec pieces[7];
    for (std::size_t i = 0; i < 7; ++i)
        pieces[i] = {out.data() + i * 100'000, i < 6 ? 100'000 : kBytes - 600'000};
    post(in.data(), kBytes, 13, 0, &context[0], f.peer);
    const fi_msg_tagged message{pieces, nullptr, 7, f.peer, 13, 0, &context[1], 0};
    until_taken([&] { return fi_tsendmsg(f.ep, &message, FI_COMPLETION | FI_TRANSMIT_COMPLETE); });
    for (int i = 0; i < 2; ++i) {
        const Entry entry = next();
        CHECK(entry.op_context == &context[0] || entry.op_context == &context[1]);
    }
    CHECK(fi_cntr_read(f.sent) == before + 1);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kBytes; ++i)
        wrong +=
            in[i] != static_cast<unsigned char>(i * 7 + i / 1000 + static_cast<unsigned>(1 - rank));
    CHECK(wrong == 0);
    // A send that asks for no completion has none (selective), but the counter sees it.
    until_taken([&] { return fi_tsend(f.ep, out.data(), 100, nullptr, f.self, 14, &context[1]); });
    post(in.data(), 100, 14, 0, &context[0], f.self);
    CHECK(next().op_context == &context[0]);
    CHECK(fi_cntr_wait(f.sent, before + 2, 10'000) == 0);
}

/// FI_MATCH_COMPLETE waits for the receive.
void matched() {
    meet();
    int context[2];
    char byte = 'x';
    if (rank == 0) {
        const iovec piece{&byte, 1};
        const fi_msg_tagged message{&piece, nullptr, 1, f.peer, 16, 0, &context[1], 0};
        until_taken([&] { return fi_tsendmsg(f.ep, &message, FI_COMPLETION | FI_MATCH_COMPLETE); });
        inject("a", 17);
        post(&byte, 1, 18, 0, &context[0], f.peer);
        CHECK(next().op_context == &context[0]);  // there and back, and the send is not done
        inject("b", 19);
        CHECK(next().op_context == &context[1]);
    } else {
        post(&byte, 1, 17, 0, &context[0], f.peer);
        next();
        inject("c", 18);
        post(&byte, 1, 19, 0, &context[0], f.peer);
        next();
        post(&byte, 1, 16, 0, &context[1], f.peer);
        CHECK(next().op_context == &context[1] && byte == 'x');
    }
    meet();
}

/// FI_DELIVERY_COMPLETE waits for the endpoint of the receiver, and not for its receive. Injected
/// messages of that level have a completion too.
void delivered() {
    meet();
    int context[2];
    char byte = 'x';
    const iovec piece{&byte, 1};
    for (unsigned n = 0; n < 2; ++n) {
        const std::uint64_t flags =
            FI_COMPLETION | FI_DELIVERY_COMPLETE | (n == 0 ? 0 : std::uint64_t{FI_INJECT});
        const fi_msg_tagged message{&piece, nullptr, 1, f.peer, 20 + n, 0, &context[n], 0};
        if (rank == 0) {
            until_taken([&] { return fi_tsendmsg(f.ep, &message, flags); });
            CHECK(next().op_context == &context[n]);  // nothing was posted for it
        }
    }
    if (rank == 0) {
        inject("d", 22);
    } else {
        char go = 0;
        post(&go, 1, 22, 0, &go, f.peer);
        CHECK(next().op_context == &go);
        for (unsigned n = 0; n < 2; ++n) {
            byte = 0;
            post(&byte, 1, 20 + n, 0, &context[n], f.peer);
            CHECK(next().op_context == &context[n] && byte == 'x');
        }
    }
    meet();
}

/// A message is matched while its receiver computes, and calls nothing.
void while_it_computes(const std::string& folder) {
    meet();
    int context = 0;
    char byte = 'x';
    const std::string done = folder + "/matched";
    if (rank == 0) {
        char go = 0;
        post(&go, 1, 41, 0, &go, f.peer);
        next();
        const iovec piece{&byte, 1};
        const fi_msg_tagged message{&piece, nullptr, 1, f.peer, 40, 0, &context, 0};
        until_taken([&] { return fi_tsendmsg(f.ep, &message, FI_COMPLETION | FI_MATCH_COMPLETE); });
        CHECK(next().op_context == &context);
        std::ofstream(done).flush();
    } else {
        post(&byte, 1, 40, 0, &context, f.peer);
        inject("g", 41);
        while (::access(done.c_str(), F_OK) != 0)
            check_time(__LINE__);
        CHECK(next().op_context == &context);
    }
    meet();
}

/// A process that sleeps in poll() gets on.
void descriptor() {
    meet();
    int fd = -1;
    NEED(fi_control(&f.queue->fid, FI_GETWAIT, &fd));
    int context = 0;
    char byte = 0;
    if (rank == 0) {
        ::usleep(20'000);
        inject("w", 15);
    } else {
        post(&byte, 1, 15, 0, &context, f.peer);
        for (;;) {
            fid* handle = &f.queue->fid;
            if (fi_trywait(f.fabric, &handle, 1) == 0) {
                pollfd waiter{fd, POLLIN, 0};
                CHECK(::poll(&waiter, 1, 10'000) == 1);
            }
            Entry entry{};
            if (fi_cq_read(f.queue, &entry, 1) == 1) break;
            check_time(__LINE__);
        }
        CHECK(byte == 'w');
    }
    meet();
}

/// Returns the nanoseconds of a message to this process, and of its receive.
double own_message() {
    constexpr int kMessages = 200;
    char in[8];
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kMessages; ++i) {
        post(in, sizeof in, 20, 0, in, f.self);
        until_taken([] { return fi_tinject(f.ep, "12345678", 8, f.self, 20); });
        CHECK(next().op_context == in);
    }
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    return took.count() / kMessages;
}

/// A message costs at most twice as much while many receives of other tags are posted.
void depth() {
    meet();
    constexpr int kWaiting = 10'000;
    constexpr int kAttempts = 20;
    static char contexts[kWaiting];
    double alone = 1e9;
    double among_others = 1e9;
    // The least of several, and again if others of this machine were in the way.
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        for (int i = 0; i < 10; ++i)
            alone = std::min(alone, own_message());
        for (char& context : contexts)
            post(nullptr, 0, 1'000'000 + static_cast<std::uint64_t>(&context - contexts), 0,
                 &context, &context - contexts < kWaiting / 2 ? f.self : FI_ADDR_UNSPEC);
        for (int i = 0; i < 10; ++i)
            among_others = std::min(among_others, own_message());
        for (char& context : contexts) {
            CHECK(fi_cancel(&f.ep->fid, &context) == 0);
            CHECK(next_error().op_context == &context);
        }
        if (among_others <= 2 * alone) break;
    }
    std::printf("rank %d: a message %.0f ns, among %d receives %.0f ns\n", rank, alone, kWaiting,
                among_others);
    CHECK(among_others <= 2 * alone);
    meet();
}

/// Takes the good message of a peer that sends malformed ones first (stranger.cc).
void from_stranger() {
    char in[16] = {};
    post(in, sizeof in, 5, 0, in, FI_ADDR_UNSPEC);
    const Entry entry = next();
    CHECK(entry.op_context == in && entry.len == 1 && in[0] == 'y' && entry.data == 7);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 && argc != 3) return 2;
    automatic = argc == 3;
    rank = std::atoi(std::getenv("ULC_RANK"));
    refusals();
    const bool alone = std::strcmp(argv[1], "stranger") == 0;
    const std::string folder = argv[1];
    while (!alone && rank == 1 && ::access((folder + "/early").c_str(), F_OK) != 0) {
        check_time(__LINE__);
        ::usleep(1000);
    }
    open_endpoint();
    if (alone) {
        from_stranger();
        close_endpoint();
        if (failures == 0) std::printf("rank %d: all right\n", rank);
        return failures == 0 ? 0 : 1;
    }
    if (rank == 0) start_early(folder);
    exchange_addresses(folder);
    rank == 0 ? end_early() : answer_early();
    tagged();
    untagged();
    peeks();
    errors();
    large();
    matched();
    delivered();
    descriptor();
    automatic ? while_it_computes(folder) : depth();
    meet();
    close_endpoint();
    if (failures == 0) std::printf("rank %d: all right\n", rank);
    return failures == 0 ? 0 : 1;
}
